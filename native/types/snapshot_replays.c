/* The methods of `SnapshotData` about one trace: its events, its allocations, levels and figures. */
#include "types/snapshot_replays.h"

#include "snapshot/expandable.h"
#include "snapshot/figures.h"
#include "snapshot/levels.h"
#include "snapshot/replay.h"
#include "snapshot/spans.h"
#include "types/snapshot_columns.h"
#include "types/snapshot_struct.h"

/* The trace of a number argument, or -1 with an exception set. */
static Py_ssize_t trace_number(const PmlSnapshotData *self, PyObject *object)
{
    Py_ssize_t number = PyLong_AsSsize_t(object);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number >= 0 && (size_t)number < self->contents.traces.used)
        return number;
    PyErr_Format(PyExc_IndexError, "trace %zd: there are %zu", number, self->contents.traces.used);
    return -1;
}

/* The replay of a trace, made when it is first asked for; NULL with an exception set. */
static struct pml_replay *replay_of(PyObject *object, PyObject *number)
{
    PmlSnapshotData *self = (PmlSnapshotData *)object;
    Py_ssize_t i = trace_number(self, number);
    if (i < 0)
        return NULL;
    if (self->replayed[i])
        return &self->replays[i];
    if (!pml_replay_init(&self->replays[i], &self->contents, &self->pickle.rows, &self->contents.traces.items[i])) {
        pml_replay_drop(&self->replays[i]);
        PyErr_NoMemory();
        return NULL;
    }
    self->replayed[i] = true;
    return &self->replays[i];
}

static PyObject *levels_tuple(const struct pml_memory_levels *levels)
{
    return Py_BuildValue("(KKK)", (unsigned long long)levels->allocated, (unsigned long long)levels->active,
                         (unsigned long long)levels->reserved);
}

PyObject *pml_snapshot_replays_replay(PyObject *self, PyObject *number)
{
    const struct pml_replay *replay = replay_of(self, number);
    if (!replay)
        return NULL;
    return Py_BuildValue("(NNIIII)", levels_tuple(&replay->at_start), levels_tuple(&replay->in_file), replay->count,
                         (unsigned)replay->lost.used, replay->guessed, replay->unequal);
}

PyObject *pml_snapshot_replays_events(PyObject *object, PyObject *number)
{
    PmlSnapshotData *self = (PmlSnapshotData *)object;
    Py_ssize_t i = trace_number(self, number);
    if (i < 0)
        return NULL;
    const struct pml_trace *trace = &self->contents.traces.items[i];
    return pml_snapshot_columns_new(self->column_type, object, self->pickle.rows.events.items + trace->first,
                                    trace->count * sizeof(struct pml_event));
}

PyObject *pml_snapshot_replays_allocations(PyObject *self, PyObject *number)
{
    const struct pml_replay *replay = replay_of(self, number);
    if (!replay)
        return NULL;
    return pml_snapshot_columns_new(((PmlSnapshotData *)self)->column_type, self, replay->allocations.items,
                                    replay->allocations.used * sizeof *replay->allocations.items);
}

PyObject *pml_snapshot_replays_peaks(PyObject *self, PyObject *number)
{
    struct pml_memory_peak peaks[4];
    const struct pml_replay *replay = replay_of(self, number);
    if (!replay)
        return NULL;
    pml_levels_peaks(replay, peaks);
    PyObject *list = PyList_New(4);
    for (int i = 0; list && i < 4; i++) {
        PyObject *peak =
            Py_BuildValue("(KKKI)", (unsigned long long)peaks[i].at.allocated, (unsigned long long)peaks[i].at.active,
                          (unsigned long long)peaks[i].at.reserved, peaks[i].moment);
        if (!peak)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, peak);
    }
    return list;
}

/* The arguments of most methods: a trace, and an array of 32-bit numbers. The view is the caller's to release. */
static const struct pml_replay *replay_and_numbers(PyObject *self, PyObject *args, Py_buffer *view, size_t *count)
{
    PyObject *number;
    if (!PyArg_ParseTuple(args, "Oy*", &number, view))
        return NULL;
    const struct pml_replay *replay = replay_of(self, number);
    if (replay && (uintptr_t)view->buf % sizeof(uint32_t)) {
        PyErr_SetString(PyExc_ValueError, "the numbers must be aligned");
        replay = NULL;
    }
    *count = (size_t)view->len / sizeof(uint32_t);
    if (!replay)
        PyBuffer_Release(view);
    return replay;
}

PyObject *pml_snapshot_replays_stretches(PyObject *self, PyObject *args)
{
    Py_buffer ends;
    size_t count;
    const struct pml_replay *replay = replay_and_numbers(self, args, &ends, &count);
    if (!replay)
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(struct pml_memory_stretch)));
    if (bytes)
        pml_levels_stretches(replay, ends.buf, count, (struct pml_memory_stretch *)PyBytes_AS_STRING(bytes));
    PyBuffer_Release(&ends);
    return bytes;
}

PyObject *pml_snapshot_replays_expandable(PyObject *self, PyObject *args)
{
    Py_buffer moments;
    size_t count;
    const struct pml_replay *replay = replay_and_numbers(self, args, &moments, &count);
    if (!replay)
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint64_t)));
    if (bytes && !pml_expandable_reserved(replay, moments.buf, count, (uint64_t *)PyBytes_AS_STRING(bytes))) {
        Py_CLEAR(bytes);
        PyErr_NoMemory();
    }
    PyBuffer_Release(&moments);
    return bytes;
}

PyObject *pml_snapshot_replays_spans(PyObject *self, PyObject *args)
{
    PyObject *number;
    unsigned moment;
    pml_memory_spans spans = {0};
    if (!PyArg_ParseTuple(args, "OI:spans", &number, &moment))
        return NULL;
    const struct pml_replay *replay = replay_of(self, number);
    if (!replay)
        return NULL;
    PyObject *bytes =
        pml_spans_at(replay, moment, &spans)
            ? PyBytes_FromStringAndSize((const char *)spans.items, (Py_ssize_t)(spans.used * sizeof *spans.items))
            : PyErr_NoMemory();
    PML_DROP(&spans);
    return bytes;
}

static PyObject *figures_of(const struct pml_replay *replay, const Py_buffer *groups, size_t count, unsigned stretches)
{
    PyObject *figures = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(struct pml_figures)));
    PyObject *lows = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * stretches * sizeof(uint64_t)));
    bool fine = figures && lows;
    if (fine &&
        !pml_figures_find(replay, groups->buf, count, stretches, (struct pml_figures *)PyBytes_AS_STRING(figures),
                          (uint64_t *)PyBytes_AS_STRING(lows))) {
        PyErr_NoMemory();
        fine = false;
    }
    PyObject *both = fine ? PyTuple_Pack(2, figures, lows) : NULL;
    Py_XDECREF(figures);
    Py_XDECREF(lows);
    return both;
}

PyObject *pml_snapshot_replays_figures(PyObject *self, PyObject *args)
{
    PyObject *number, *both = NULL;
    Py_buffer groups;
    unsigned count, stretches;
    if (!PyArg_ParseTuple(args, "Oy*II:figures", &number, &groups, &count, &stretches))
        return NULL;
    const struct pml_replay *replay = replay_of(self, number);
    if (replay && ((size_t)groups.len / sizeof(uint32_t) < replay->rows->stacks.stacks.used ||
                   (uintptr_t)groups.buf % sizeof(uint32_t) || !count || !stretches || stretches > 4096))
        PyErr_SetString(PyExc_ValueError, "figures: a group for each stack, and at least one group and stretch");
    else if (replay)
        both = figures_of(replay, &groups, count, stretches);
    PyBuffer_Release(&groups);
    return both;
}
