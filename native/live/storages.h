/* What is done with the storages of all live tensors at once. Needs the GIL; called by Python. */
#ifndef PML_STORAGES_H
#define PML_STORAGES_H

#include "cpython/compat.h"

int pml_storages_add_types(PyObject *module);

PyObject *pml_storages_enter_tensors(PyObject *module, PyObject *args);
PyObject *pml_storages_count_once(PyObject *module, PyObject *storages);
PyObject *pml_storages_set_cpu_blocks(PyObject *module, PyObject *storages);
PyObject *pml_storages_sum(PyObject *module, PyObject *storages);
PyObject *pml_storages_largest_first(PyObject *module, PyObject *args);

#endif
