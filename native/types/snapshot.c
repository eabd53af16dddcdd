/* Counters as Python reads them (see snapshot.h). */
#include "types/snapshot.h"

#include "cpython/named_tuples.h"
#include "types/growth_figures.h"

static PyStructSequence_Field line_stats_fields[] = {
    {"runs", "segments"},
    {"active_peak_bytes", "the highest active bytes within a segment"},
    {"allocated_peak_bytes", NULL},
    {"reserved_peak_bytes", NULL},
    {"active_current_bytes", "the highest active bytes at the end of a segment"},
    {"allocated_current_bytes", NULL},
    {"reserved_current_bytes", NULL},
    {"net_first_bytes", "allocated minus freed in the first segment"},
    {"net_sum_bytes", "in all segments"},
    {"net_max_bytes", "the largest of a segment"},
    {"net_last_bytes", "in the last segment"},
    {"gross_bytes", "allocated in all segments"},
    {"allocations", "their number"},
    {"column_values", "tuple of the statistics columns' maxima, or None"},
    {"growth", "what the line held over its runs, or None"},
    {"net_later_max_bytes", "the largest net of all segments but the first, or None"},
    {NULL, NULL},
};
static struct pml_named_tuple line_stats_kind =
    PML_NAMED_TUPLE("LineStats", "A line's figures on one device.", line_stats_fields);

static PyStructSequence_Field line_counts_fields[] = {
    {"line", "its number"},
    {"hits", "how often it ran"},
    {"charged_slots", "tuple of the slots that were the target when a segment ended"},
    {"stats_by_slot", "dict of LineStats by device slot; -1: by the target"},
    {NULL, NULL},
};
static struct pml_named_tuple line_counts_kind =
    PML_NAMED_TUPLE("LineCounts", "What was counted for a line.", line_counts_fields);

static PyStructSequence_Field code_counts_fields[] = {
    {"code", "the code object"},
    {"calls", "how often it was called"},
    {"lines", "list of LineCounts"},
    {NULL, NULL},
};
static struct pml_named_tuple code_counts_kind =
    PML_NAMED_TUPLE("CodeCounts", "What was counted for a code object.", code_counts_fields);

int pml_snapshot_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &line_stats_kind) < 0 || pml_named_tuples_add(module, &line_counts_kind) < 0
               ? -1
               : pml_named_tuples_add(module, &code_counts_kind);
}

static PyObject *stat_values_tuple(const struct pml_line_table *table, const struct pml_line_columns *stat_values)
{
    if (!stat_values)
        Py_RETURN_NONE;
    PyObject *tuple = PyTuple_New(table->stat_columns);
    for (int i = 0; tuple && i < table->stat_columns; i++) {
        PyObject *value = PyLong_FromLongLong(stat_values->value[i]);
        if (!value)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, value);
    }
    return tuple;
}

static PyObject *net_later_max(const struct pml_line_stats *s)
{
    if (s->runs < 2)
        Py_RETURN_NONE;
    return PyLong_FromLongLong(s->net_later_max);
}

static PyObject *line_stats(const struct pml_line_table *table, int line, int slot)
{
    const struct pml_line_stats copy = *pml_line_table_stats(table, line, slot), *s = &copy;
    PyObject *stat_values = stat_values_tuple(table, pml_line_table_columns(table, line, slot));
    PyObject *growth = stat_values ? pml_growth_figures_new(slot == PML_TARGET_SLOT ? NULL : s->growth) : NULL;
    PyObject *later = growth ? net_later_max(s) : NULL;
    return pml_named_tuples_build(
        &line_stats_kind, "(LLLLLLLLLLLLLNNN)", (long long)s->runs, (long long)s->peak[PML_ACTIVE],
        (long long)s->peak[PML_ALLOCATED], (long long)s->peak[PML_RESERVED], (long long)s->level[PML_ACTIVE],
        (long long)s->level[PML_ALLOCATED], (long long)s->level[PML_RESERVED], (long long)s->net_first,
        (long long)s->net_sum, (long long)s->net_max, (long long)s->net_last, (long long)s->gross, (long long)s->count,
        stat_values, growth, later);
}

static int set_slot(PyObject *dict, const struct pml_line_table *table, int line, int slot)
{
    if (!pml_line_table_stats(table, line, slot))
        return 0;
    PyObject *key = PyLong_FromLong(slot == PML_TARGET_SLOT ? -1 : slot - 1);
    PyObject *stats = key ? line_stats(table, line, slot) : NULL;
    int result = stats ? PyDict_SetItem(dict, key, stats) : -1;
    Py_XDECREF(key);
    Py_XDECREF(stats);
    return result;
}

static PyObject *slots_dict(const struct pml_line_table *table, int line)
{
    PyObject *dict = PyDict_New();
    for (int slot = 0; dict && slot <= PML_MAX_DEVICES; slot++)
        if (set_slot(dict, table, line, slot) < 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *charged_tuple(uint64_t charged)
{
    PyObject *list = PyList_New(0);
    for (int d = 0; list && d < PML_MAX_DEVICES; d++) {
        if (!(charged >> d & 1))
            continue;
        PyObject *device = PyLong_FromLong(d);
        if (!device || PyList_Append(list, device) < 0)
            Py_CLEAR(list);
        Py_XDECREF(device);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *line_counts(const struct pml_line_table *table, int index)
{
    int line = table->first_line + index;
    PyObject *charged = charged_tuple(table->line[index].charged);
    PyObject *slots = charged ? slots_dict(table, line) : NULL;
    return pml_named_tuples_build(&line_counts_kind, "(iKNN)", line, (unsigned long long)table->line[index].hits,
                                  charged, slots);
}

static int append_line(PyObject *list, const struct pml_line_table *table, int index)
{
    if (!table->line[index].hits && !table->line[index].charged)
        return 0;
    PyObject *row = line_counts(table, index);
    int result = row ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return result;
}

PyObject *pml_snapshot_code(PyObject *code, const struct pml_subscriber *sub)
{
    PyObject *lines = PyList_New(0);
    for (int i = 0; lines && i < sub->table->lines; i++)
        if (append_line(lines, sub->table, i) < 0)
            Py_CLEAR(lines);
    return pml_named_tuples_build(&code_counts_kind, "(OKN)", code, (unsigned long long)sub->calls, lines);
}
