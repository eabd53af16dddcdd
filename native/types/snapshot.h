/* Counters of one code object in one profiler, as Python reads them. Needs the GIL. */
#ifndef PML_SNAPSHOT_H
#define PML_SNAPSHOT_H

#include "cpython/compat.h"
#include "lines/codes.h"

int pml_snapshot_add_types(PyObject *module);
/* A CodeCounts: a new reference. */
PyObject *pml_snapshot_code(PyObject *code, const struct pml_subscriber *sub);

#endif
