/* The Python types of a memory snapshot: `SnapshotData`, what one file holds, and `SnapshotColumn`, a buffer of it. GIL. */
#ifndef PML_SNAPSHOT_TYPE_H
#define PML_SNAPSHOT_TYPE_H

#include "cpython/compat.h"

#include "snapshot/replay.h"
#include "snapshot/snapshot_types.h"

typedef struct {
    PyObject_HEAD
    PyTypeObject *column_type; /* owned */
    struct pml_pickle pickle;
    struct pml_contents contents;
    struct pml_replay *replays; /* one a trace; all zero until asked for */
    bool *replayed;
    PyObject *other; /* dict: what the file has besides rows */
} PmlSnapshotData;

/* snapshot_columns.c: a buffer that keeps its owner alive. */
PyObject *pml_snapshot_column(PyTypeObject *type, PyObject *owner, const void *start, size_t bytes);
extern PyType_Spec pml_snapshot_column_spec;

/* snapshot_objects.c: plain values of the pickle as Python objects. */
PyObject *pml_snapshot_object(const struct pml_pickle *pickle, pml_value value, int depth);
PyObject *pml_snapshot_text(const struct pml_names *names, uint32_t number);

/* snapshot_replays.c: methods about one trace. */
PyObject *pml_snapshot_replay(PyObject *self, PyObject *number);
PyObject *pml_snapshot_events(PyObject *self, PyObject *number);
PyObject *pml_snapshot_allocations(PyObject *self, PyObject *number);
PyObject *pml_snapshot_peaks(PyObject *self, PyObject *number);
PyObject *pml_snapshot_stretches(PyObject *self, PyObject *args);
PyObject *pml_snapshot_spans(PyObject *self, PyObject *args);
PyObject *pml_snapshot_figures(PyObject *self, PyObject *args);
PyObject *pml_snapshot_expandable(PyObject *self, PyObject *args);

#endif
