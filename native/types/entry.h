/* The type Entry: as long as one lives, the hook is installed on the thread that made it, and its profiler records.
 * Needs the GIL.
 */
#ifndef PML_ENTRY_H
#define PML_ENTRY_H

#include "types/tracer.h"

extern PyType_Spec pml_entry_spec;

/* `tracer`: the profiler that is enabled, or NULL. NULL with an exception set when memory runs out. */
PyObject *pml_entry_new(struct pml_state *state, PmlTracer *tracer);

/* Called by Python. */
PyObject *pml_entry_enter(PyObject *module, PyObject *entries);
PyObject *pml_entry_adopt_thread(PyObject *module, PyObject *unused);
PyObject *pml_entry_any_enabled(PyObject *module, PyObject *unused);

#endif
