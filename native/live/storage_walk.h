/* Walks over live Python objects (see storage_walk.c). Needs the GIL. */
#ifndef PML_STORAGE_WALK_H
#define PML_STORAGE_WALK_H

#include "cpython/compat.h"

/* The answer of a question to an object, None where there was an `Exception`; NULL for what must not be swallowed. */
PyObject *pml_storage_walk_try(PyObject *question, PyObject *object);

/* Called by Python. */
PyObject *pml_storage_walk_instances(PyObject *module, PyObject *types);
PyObject *pml_storage_walk_kinds(PyObject *module, PyObject *types);
PyObject *pml_storage_walk_try_each(PyObject *module, PyObject *args);
PyObject *pml_storage_walk_find_answers(PyObject *module, PyObject *args);
PyObject *pml_storage_walk_sum_answers(PyObject *module, PyObject *args);

#endif
