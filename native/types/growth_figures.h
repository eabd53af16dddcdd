/* A line's later runs, for Python. Needs the GIL. */
#ifndef PML_GROWTH_FIGURES_H
#define PML_GROWTH_FIGURES_H

#include "cpython/compat.h"
#include "lines/growth.h"

/* A plain tuple, or None where `growth` is NULL. A new reference. */
PyObject *pml_growth_figures_new(const struct pml_growth *growth, const void *code, int line, int device);

#endif
