/* What a line held over its runs as a plain tuple, for the snapshot (see growth.h). */
#include "types/growth_figures.h"

#include "frames/segment.h"
#include "holders/ledger.h"
#include "lines/codes.h"

static PyObject *stretch_tuple(const struct pml_stretch *s)
{
    return Py_BuildValue("(LLLL)", (long long)s->samples, (long long)s->runs, (long long)s->held, (long long)s->old);
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

void pml_growth_figures_read_end(struct pml_growth *growth, const void *code, int line, int device)
{
    pml_ledger_of_line(device, pml_codes_find(code), line, &growth->live, &growth->end);
}

/* (what the line holds at the end, the same with what went as functions ended, stretches by runs, stretches by calls)
 */
PyObject *pml_growth_figures_new(const struct pml_growth *growth)
{
    if (!growth)
        Py_RETURN_NONE;
    PyObject *runs = stretch_list(&growth->runs, growth->closed_runs);
    PyObject *calls = runs ? stretch_list(&growth->calls, growth->closed_calls) : NULL;
    if (!calls) {
        Py_XDECREF(runs);
        return NULL;
    }
    return Py_BuildValue("(LLNN)", (long long)growth->live, (long long)growth->end, runs, calls);
}
