/* The type Holders: who holds the peak, for one profiler or a group. Needs the GIL. */
#ifndef PML_HOLDERS_TYPE_H
#define PML_HOLDERS_TYPE_H

#include "cpython/state.h"
#include "holders/peak_picture.h"

typedef struct {
    PyObject_HEAD struct pml_peak_picture picture;
} PmlHolders;

extern PyType_Spec pml_holders_type_spec;
int pml_holders_type_add_types(PyObject *module);

/* A function of the module. */
PyObject *pml_holders_type_last_failure(PyObject *module, PyObject *unused);

#endif
