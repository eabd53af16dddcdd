/* The type PeakWindow (see peak_window.c). Needs the GIL. */
#ifndef PML_PEAK_WINDOW_H
#define PML_PEAK_WINDOW_H

#include "cpython/state.h"

extern PyType_Spec pml_peak_window_spec;
int pml_peak_window_add_types(PyObject *module);

#endif
