/* What only tests call: allocator events with made-up bytes. Needs the GIL; called by Python. */
#ifndef PML_TESTING_H
#define PML_TESTING_H

#include "cpython/compat.h"

PyObject *pml_testing_inject_event(PyObject *module, PyObject *args);
PyObject *pml_testing_inject_failure(PyObject *module, PyObject *args);

#endif
