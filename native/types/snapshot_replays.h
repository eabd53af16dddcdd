/* The methods of `SnapshotData` about one trace. GIL. */
#ifndef PML_SNAPSHOT_REPLAYS_H
#define PML_SNAPSHOT_REPLAYS_H

#include "cpython/compat.h"

PyObject *pml_snapshot_replays_replay(PyObject *self, PyObject *number);
PyObject *pml_snapshot_replays_events(PyObject *self, PyObject *number);
PyObject *pml_snapshot_replays_allocations(PyObject *self, PyObject *number);
PyObject *pml_snapshot_replays_peaks(PyObject *self, PyObject *number);
PyObject *pml_snapshot_replays_stretches(PyObject *self, PyObject *args);
PyObject *pml_snapshot_replays_spans(PyObject *self, PyObject *args);
PyObject *pml_snapshot_replays_figures(PyObject *self, PyObject *args);
PyObject *pml_snapshot_replays_expandable(PyObject *self, PyObject *args);

#endif
