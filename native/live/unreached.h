/* The objects of the collector that a walk has not come to (see unreached.c). Needs the GIL. */
#ifndef PML_UNREACHED_H
#define PML_UNREACHED_H

#include "live/reach.h"

/* Three lists, targets in none: the objects that something besides the collector's objects refers to (calls that run, C
 * and C++); of all others the instances of classes, and the rest. `ours`: a list of objects whose references do not
 * count. NULL with an exception set. */
#define PML_UNREACHED_LISTS 3
PyObject *pml_unreached_find(const struct pml_reach *reach, PyObject *ours);

#endif
