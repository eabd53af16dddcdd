/* Which chains of Python objects hold given ones (see chains.c). Needs the GIL; called by Python. */
#ifndef PML_CHAINS_H
#define PML_CHAINS_H

#include "cpython/compat.h"

int pml_chains_add_types(PyObject *module);

PyObject *pml_chains_find(PyObject *module, PyObject *args);

#endif
