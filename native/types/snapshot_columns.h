/* The type `SnapshotColumn`: a read-only buffer that keeps its owner alive. GIL. */
#ifndef PML_SNAPSHOT_COLUMNS_H
#define PML_SNAPSHOT_COLUMNS_H

#include "cpython/compat.h"

PyObject *pml_snapshot_columns_new(PyTypeObject *type, PyObject *owner, const void *start, size_t bytes);
extern PyType_Spec pml_snapshot_columns_spec;

#endif
