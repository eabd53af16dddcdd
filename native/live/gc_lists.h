/* The objects that the collector keeps (see gc_lists.c). Needs the GIL. */
#ifndef PML_GC_LISTS_H
#define PML_GC_LISTS_H

#include "cpython/compat.h"

#include <stdbool.h>

/* A list of the objects whose type `wanted` accepts; NULL with an exception set. The collector must be off. */
PyObject *pml_gc_lists_select(bool (*wanted)(PyTypeObject *type, void *arg), void *arg);

#endif
