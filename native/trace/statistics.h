/* PyTorch's allocator statistics: what events do not show. Needs the GIL; functions that return an object are called by
 * Python. */
#ifndef PML_STATISTICS_H
#define PML_STATISTICS_H

#include "cpython/state.h"

/* A segment ends or begins: bring the meter up to date and fold it into the open windows; `sample`: read the columns
 * too. */
void pml_statistics_sync(struct pml_state *state, bool sample);
PyObject *pml_statistics_connect(PyObject *module, PyObject *args);
PyObject *pml_statistics_only(PyObject *module, PyObject *flag);
PyObject *pml_statistics_add_column(PyObject *module, PyObject *args);
PyObject *pml_statistics_sample(PyObject *module, PyObject *unused);
PyObject *pml_statistics_kept(PyObject *module, PyObject *device);
PyObject *pml_statistics_forget(PyObject *module, PyObject *device);
PyObject *pml_statistics_merge_peaks(PyObject *module, PyObject *args);

#endif
