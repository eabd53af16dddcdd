/* What the module needs of this folder: adding its Python types. GIL. */
#ifndef PML_SNAPSHOT_TYPES_H
#define PML_SNAPSHOT_TYPES_H

#include "cpython/compat.h"

/* Add `SnapshotData` and `SnapshotColumn` to the module; -1 with an exception set. */
int pml_snapshot_add_types(PyObject *module);

#endif
