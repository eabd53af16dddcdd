/* What a line held over its runs, as named tuples (see growth.h). */
#include "types/growth_figures.h"

#include "cpython/named_tuples.h"
#include "frames/segment.h"
#include "holders/ledger.h"
#include "lines/codes.h"

static PyStructSequence_Field stretch_fields[] = {
    {"samples", "their number"},
    {"runs", "runs of the line that they cover"},
    {"held_bytes", "the lowest that the line held as one of these runs began"},
    {"old_bytes", "the lowest of what it had made before its last run"},
    {NULL, NULL},
};
static struct pml_named_tuple stretch_kind =
    PML_NAMED_TUPLE("GrowthStretch", "Samples that followed each other.", stretch_fields);

static PyStructSequence_Field growth_fields[] = {
    {"live_bytes", "what the line holds at the end"},
    {"end_bytes", "the same with what was freed only because functions ended"},
    {"runs", "list of GrowthStretch with a sample a run of the line"},
    {"calls", "list of GrowthStretch with a sample a call of its function"},
    {NULL, NULL},
};
static struct pml_named_tuple growth_kind =
    PML_NAMED_TUPLE("LineGrowth", "What a line held on one device over its runs.", growth_fields);

int pml_growth_figures_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &stretch_kind) < 0 ? -1 : pml_named_tuples_add(module, &growth_kind);
}

static PyObject *stretch_tuple(const struct pml_stretch *s)
{
    return pml_named_tuples_build(&stretch_kind, "(LLLL)", (long long)s->samples, (long long)s->runs,
                                  (long long)s->held, (long long)s->old);
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

PyObject *pml_growth_figures_new(const struct pml_growth *growth)
{
    if (!growth)
        Py_RETURN_NONE;
    PyObject *runs = stretch_list(&growth->runs, growth->closed_runs);
    PyObject *calls = runs ? stretch_list(&growth->calls, growth->closed_calls) : NULL;
    return pml_named_tuples_build(&growth_kind, "(LLNN)", (long long)growth->live, (long long)growth->end, runs, calls);
}
