/* Where Python enters and leaves the hook of its thread. Needs the GIL; called by Python. */
#ifndef PML_ENTRY_H
#define PML_ENTRY_H

#include "cpython/compat.h"

PyObject *pml_entry_enter(PyObject *module, PyObject *unused);
PyObject *pml_entry_leave(PyObject *module, PyObject *hook);
PyObject *pml_entry_push_hook(PyObject *module, PyObject *hooks);
PyObject *pml_entry_pop_hook(PyObject *module, PyObject *hooks);
PyObject *pml_entry_adopt_thread(PyObject *module, PyObject *unused);
PyObject *pml_entry_follow_new_threads(PyObject *module, PyObject *change);

#endif
