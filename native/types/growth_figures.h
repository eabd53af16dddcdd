/* What a line held over its runs, for Python. Needs the GIL. */
#ifndef PML_GROWTH_FIGURES_H
#define PML_GROWTH_FIGURES_H

#include "cpython/compat.h"
#include "lines/growth.h"

int pml_growth_figures_add_types(PyObject *module);
/* What a line holds on a device now is kept as its end. */
void pml_growth_figures_read_end(struct pml_growth *growth, const void *code, int line, int device);
/* A LineGrowth, or None where `growth` is NULL. A new reference. */
PyObject *pml_growth_figures_new(const struct pml_growth *growth);

#endif
