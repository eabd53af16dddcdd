/* What autograd keeps, for Python. Needs the GIL. */
#ifndef PML_SAVED_FIGURES_H
#define PML_SAVED_FIGURES_H

#include "cpython/compat.h"
#include "saved/saved_tables.h"

int pml_saved_figures_add_types(PyObject *module);
/* A SavedCode: one code object's figures. A new reference. */
PyObject *pml_saved_figures_new(PyObject *code, struct pml_saved_table *table);

/* Called by Python. */
PyObject *pml_saved_figures_connect(PyObject *module, PyObject *args);
PyObject *pml_saved_figures_learn_wrapper(PyObject *module, PyObject *args);
PyObject *pml_saved_figures_hooks_are_set(PyObject *module, PyObject *unused);
PyObject *pml_saved_figures_follow(PyObject *module, PyObject *follow);

#endif
