/* Plain values of a snapshot's pickle as Python objects. GIL. */
#ifndef PML_SNAPSHOT_OBJECTS_H
#define PML_SNAPSHOT_OBJECTS_H

#include "cpython/compat.h"
#include "snapshot/reading.h"

PyObject *pml_snapshot_objects_make(const struct pml_pickle *pickle, pml_value value, int depth);
PyObject *pml_snapshot_objects_text(const struct pml_names *names, uint32_t number);

#endif
