/* A line's later runs as a plain tuple, for the snapshot (see growth.h). */
#include "types/growth_figures.h"

#include "frames/segment.h"
#include "holders/ledger.h"
#include "lines/codes.h"

static PyObject *stretch_tuple(const struct pml_stretch *s)
{
    return Py_BuildValue("(LLLLLL)", (long long)s->runs, (long long)s->low, (long long)s->level_low,
                         (long long)s->reserved_low, (long long)s->net, (long long)s->reserved_net);
}

static PyObject *stretch_list(const struct pml_history *history, const struct pml_stretch *closed)
{
    PyObject *list = PyList_New(history->closed + 1);
    for (int i = 0; list && i <= history->closed; i++) {
        PyObject *item = stretch_tuple(i < history->closed ? &closed[i] : &history->open);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* (whether `low` is what the line itself holds, what it holds now or -1, what it lost as functions ended, bytes
 * allocated from the first of the runs to the last one, and from that to the end of the outermost call, bytes freed
 * then, most freed between two runs, stretches by runs, stretches by outermost calls) */
PyObject *pml_growth_figures_new(const struct pml_growth *growth, const void *code, int line, int device)
{
    if (!growth)
        Py_RETURN_NONE;
    int64_t live, ended;
    pml_ledger_of_line(device, pml_codes_find(code), line, &live, &ended);
    PyObject *runs = stretch_list(&growth->runs, growth->closed_runs);
    PyObject *calls = runs ? stretch_list(&growth->calls, growth->closed_calls) : NULL;
    if (!calls) {
        Py_XDECREF(runs);
        return NULL;
    }
    return Py_BuildValue(
        "(NLLLLLLNN)", PyBool_FromLong(growth->live), (long long)live, (long long)ended,
        (long long)(growth->gross - growth->gross_first), (long long)(pml_segment_gross_at_end[device] - growth->gross),
        (long long)(pml_segment_freed_at_end[device] - growth->freed), (long long)growth->freed_gap, runs, calls);
}
