/* One memory snapshot as a Python object: what its methods share. GIL. */
#ifndef PML_SNAPSHOT_STRUCT_H
#define PML_SNAPSHOT_STRUCT_H

#include "cpython/compat.h"

#include "snapshot/contents.h"
#include "snapshot/replayed.h"

typedef struct {
    PyObject_HEAD PyTypeObject *column_type; /* owned */
    struct pml_pickle pickle;
    struct pml_contents contents;
    struct pml_replay *replays; /* one a trace; all zero until asked for */
    bool *replayed;
    PyObject *other; /* dict: what the file has besides rows */
} PmlSnapshotData;

#endif
