/* The type `SnapshotData`: one memory snapshot. GIL. */
#ifndef PML_SNAPSHOT_DATA_H
#define PML_SNAPSHOT_DATA_H

#include "cpython/compat.h"

/* Add `SnapshotData` and `SnapshotColumn` to the module; -1 with an exception set. */
int pml_snapshot_data_add_types(PyObject *module);

#endif
