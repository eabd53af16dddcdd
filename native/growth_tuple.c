/* A line's later runs as a plain tuple, for the snapshot (see growth.h). */
#include "state.h"

#include "holders.h"

static PyObject *stretch_list(const struct pml_history *history)
{
    PyObject *list = PyList_New(history->used);
    for (int i = 0; list && i < history->used; i++) {
        const struct pml_stretch *s = &history->stretch[i];
        PyObject *item = Py_BuildValue("(LLLLLL)", (long long)s->runs, (long long)s->low, (long long)s->level_low,
                                       (long long)s->reserved_low, (long long)s->net, (long long)s->reserved_net);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* (whether `low` is what the line itself holds, what it holds now or -1, what it lost as functions ended, largest net,
 * bytes allocated from the first of them to the last one, and from that to the end of the outermost call, bytes freed
 * then, most freed between two runs, stretches by runs, stretches by outermost calls). The target
 * slot is no device of its own: for it, the present target's is meant. */
PyObject *pml_growth_tuple(const struct pml_growth *growth, const void *code, int line, int slot)
{
    if (!growth)
        Py_RETURN_NONE;
    int device = slot == PML_TARGET_SLOT ? pml_target_device : slot - 1;
    int64_t live, ended;
    pml_holders_of_line(device, pml_codemap_find(code), line, &live, &ended);
    PyObject *runs = stretch_list(&growth->runs);
    PyObject *calls = runs ? stretch_list(&growth->calls) : NULL;
    if (!calls) {
        Py_XDECREF(runs);
        return NULL;
    }
    return Py_BuildValue("(NLLLLLLLNN)", PyBool_FromLong(growth->live), (long long)live, (long long)ended,
                         (long long)growth->net_max, (long long)(growth->gross - growth->gross_first),
                         (long long)(pml_gross_at_end[device] - growth->gross),
                         (long long)(pml_freed_at_end[device] - growth->freed), (long long)growth->freed_gap, runs,
                         calls);
}
