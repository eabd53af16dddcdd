/* A line's later runs as a plain tuple, for the snapshot (see growth.h). */
#include "state.h"

static PyObject *stretch_list(const struct pml_history *history)
{
    PyObject *list = PyList_New(history->used);
    for (int i = 0; list && i < history->used; i++) {
        const struct pml_stretch *s = &history->stretch[i];
        PyObject *item = Py_BuildValue("(LLLLL)", (long long)s->runs, (long long)s->low, (long long)s->reserved_low,
                                       (long long)s->net, (long long)s->reserved_net);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* (whether levels are those of the line itself, largest net, bytes freed since the last run until the outermost call's end, most freed between two runs, runs,
 * outermost calls); the first slot's device is not one, so what was freed since is not known there. */
PyObject *pml_growth_tuple(const struct pml_growth *growth, int slot)
{
    if (!growth)
        Py_RETURN_NONE;
    int64_t device = slot == PML_TARGET_SLOT ? pml_target_device : slot - 1;
    PyObject *runs = stretch_list(&growth->runs);
    PyObject *calls = runs ? stretch_list(&growth->calls) : NULL;
    if (!calls) {
        Py_XDECREF(runs);
        return NULL;
    }
    return Py_BuildValue("(NLLLNN)", PyBool_FromLong(growth->live), (long long)growth->net_max,
                         (long long)(pml_freed_at_end[device] - growth->freed), (long long)growth->freed_gap, runs,
                         calls);
}
