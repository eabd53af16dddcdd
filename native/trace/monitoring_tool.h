/* Our tool of sys.monitoring (Python 3.12 and later): its id, callbacks and events. Needs the GIL.
 *
 * An id is held as long as some code object is watched; then all events are off and the id is free again. Where no id
 * is free, or PYTORCH_MEMLAB_ENGINE is "settrace", the trace function (hook.c) is the source of events from then on.
 */
#ifndef PML_MONITORING_TOOL_H
#define PML_MONITORING_TOOL_H

#include "cpython/state.h"

struct pml_monitoring_callback {
    const char *event;
    bool local; /* on for watched code objects; else for all code */
    PyMethodDef function;
};

/* As the extension module is made. -1 with an exception set. */
int pml_monitoring_tool_begin(PyObject *owner);
/* Whether events come from sys.monitoring, or will once a code object is watched. */
bool pml_monitoring_tool_is_used(struct pml_state *state);
/* Give a code object events; the first one gets the tool. False, with or without an exception set, if that failed. */
bool pml_monitoring_tool_watch(struct pml_state *state, PyObject *code, struct pml_monitoring_callback *callbacks,
                               int count);
/* Take them away; the last one gives the tool back. */
bool pml_monitoring_tool_unwatch(struct pml_state *state, PyObject *code);

/* Whether somebody gave our id to another tool: events no longer come, and the id is left alone. */
bool pml_monitoring_tool_displaced(struct pml_state *state);

/* A function of the module. */
PyObject *pml_monitoring_tool_engine(PyObject *module, PyObject *unused);

#endif
