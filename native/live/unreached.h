/* The objects of the collector that a walk has not come to (see unreached.c). Needs the GIL. */
#ifndef PML_UNREACHED_H
#define PML_UNREACHED_H

#include "live/reach.h"

/* A pair of lists, targets in neither: the objects that something besides the collector's objects refers to (calls that
 * run, C and C++), and all others. `ours`: a list of objects whose references do not count. NULL with an exception set.
 */
PyObject *pml_unreached_find(const struct pml_reach *reach, PyObject *ours);

#endif
