/* The module's state (see state.h). */
#include "cpython/state.h"

struct pml_state *pml_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

int pml_state_begin(PyObject *module)
{
    struct pml_state *state = pml_state_of(module);
    state->monitoring.owner = module;
    state->hook_key = PyUnicode_InternFromString("pytorch_memlab_c.hook");
    state->statistics.kept = PyDict_New();
    state->statistics.columns = PyList_New(0);
    return state->hook_key && state->statistics.kept && state->statistics.columns ? 0 : -1;
}

int pml_state_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct pml_state *state = pml_state_of(module);
    Py_VISIT(state->hook_type);
    Py_VISIT(state->entry_type);
    Py_VISIT(state->tracer_type);
    Py_VISIT(state->switch_type);
    Py_VISIT(state->window_block_type);
    Py_VISIT(state->peak_window_type);
    Py_VISIT(state->holders_type);
    Py_VISIT(state->storage_type);
    Py_VISIT(state->statistics.read);
    Py_VISIT(state->statistics.reset);
    Py_VISIT(state->statistics.devices);
    Py_VISIT(state->statistics.kept);
    Py_VISIT(state->statistics.columns);
    Py_VISIT(state->monitoring.module);
    Py_VISIT(state->monitoring.disable);
    Py_VISIT(state->monitoring.registered);
    for (int i = 0; i < PML_MONITORING_FUNCTIONS; i++)
        Py_VISIT(state->monitoring.function[i]);
    return 0;
}

int pml_state_clear(PyObject *module)
{
    struct pml_state *state = pml_state_of(module);
    Py_CLEAR(state->hook_type);
    Py_CLEAR(state->entry_type);
    Py_CLEAR(state->tracer_type);
    Py_CLEAR(state->switch_type);
    Py_CLEAR(state->window_block_type);
    Py_CLEAR(state->peak_window_type);
    Py_CLEAR(state->holders_type);
    Py_CLEAR(state->storage_type);
    Py_CLEAR(state->hook_key);
    Py_CLEAR(state->statistics.read);
    Py_CLEAR(state->statistics.reset);
    Py_CLEAR(state->statistics.devices);
    Py_CLEAR(state->statistics.kept);
    Py_CLEAR(state->statistics.columns);
    state->monitoring.refused = true;
    Py_CLEAR(state->monitoring.module);
    Py_CLEAR(state->monitoring.disable);
    Py_CLEAR(state->monitoring.name);
    Py_CLEAR(state->monitoring.registered);
    for (int i = 0; i < PML_MONITORING_FUNCTIONS; i++)
        Py_CLEAR(state->monitoring.function[i]);
    state->monitoring.tool = 0;
    return 0;
}
