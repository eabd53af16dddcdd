/* The type Tracer: one profiler's code objects and counters; start, stop, snapshot.
 *
 * Ownership: a tracer owns its subscribers and line tables and keeps its code objects alive; the code map only points
 * to them, and is updated before they are freed. Needs the GIL.
 */
#include "types/tracer.h"

#include <stdlib.h>

#include "base/moment.h"
#include "events/allocator_events.h"
#include "frames/segment.h"
#include "holders/picture_recording.h"
#include "meter/stat_columns.h"
#include "saved/saved_tables.h"
#include "trace/hook.h"
#include "trace/monitor.h"
#include "trace/monitoring_tool.h"
#include "trace/statistics.h"
#include "types/growth_figures.h"
#include "types/saved_figures.h"
#include "types/snapshot.h"

#define MOST_LINES 1000000

static Py_ssize_t index_of(const PmlTracer *tracer, PyObject *code)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracer->codes); i++)
        if (PyList_GET_ITEM(tracer->codes, i) == code)
            return i;
    return -1;
}

static void subscriber_free(PyObject *code, struct pml_subscriber *sub)
{
    pml_saved_tables_lock();
    pml_codes_unsubscribe(code, sub);
    pml_saved_tables_unlock();
    pml_line_table_free(sub->table);
    pml_saved_tables_release(sub->saved);
    free(sub);
}

static bool subscribe(PyObject *code, struct pml_subscriber *sub)
{
    pml_saved_tables_lock();
    bool done = pml_codes_subscribe(code, sub);
    pml_saved_tables_unlock();
    return done;
}

static struct pml_subscriber *subscriber_new(PmlTracer *tracer, PyObject *code, int first, int last)
{
    struct pml_recorder *recorder = &tracer->recorder;
    struct pml_subscriber *sub = calloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    sub->recorder = recorder;
    sub->table = pml_line_table_new(first, last, recorder->stat_columns, recorder->stat_column_ids);
    if (recorder->saved_group)
        sub->saved = pml_saved_tables_new(first, last, recorder->saved_group);
    if (sub->table && !sub->saved == !recorder->saved_group && subscribe(code, sub))
        return sub;
    pml_line_table_free(sub->table);
    pml_saved_tables_release(sub->saved);
    free(sub);
    return NULL;
}

/* Of a tuple of tuples; NULL with an exception set. */
static struct pml_line_part *read_parts(PyObject *parts)
{
    Py_ssize_t count = PyTuple_GET_SIZE(parts);
    struct pml_line_part *part = calloc((size_t)count + 1, sizeof *part);
    if (!part)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; part && i < count; i++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(parts, i), "iii;a part is (start, end, line)", &part[i].start,
                              &part[i].end, &part[i].line)) {
            free(part);
            part = NULL;
        }
    return part;
}

static int set_parts(PyObject *code, PyObject *parts)
{
    struct pml_line_part *part = parts ? read_parts(parts) : NULL;
    bool kept = !part || pml_codes_set_parts(code, part, (int)PyTuple_GET_SIZE(parts));
    free(part);
    if (!kept)
        PyErr_NoMemory();
    return PyErr_Occurred() ? -1 : 0;
}

static int append_subscriber(PmlTracer *tracer, PyObject *code, int first, int last)
{
    Py_ssize_t count = PyList_GET_SIZE(tracer->codes);
    struct pml_subscriber **grown = realloc(tracer->subscriber, (size_t)(count + 1) * sizeof *grown);
    if (grown)
        tracer->subscriber = grown;
    struct pml_subscriber *sub = grown ? subscriber_new(tracer, code, first, last) : NULL;
    if (!sub) {
        PyErr_NoMemory();
        return -1;
    }
    if (PyList_Append(tracer->codes, code) < 0) {
        subscriber_free(code, sub);
        return -1;
    }
    grown[count] = sub;
    return 0;
}

/* Whether the code object needs events has changed. */
static void update_events(PmlTracer *tracer, PyObject *code)
{
    tracer->recorder.failed |= !pml_monitor_update(tracer->state, code);
}

static PyObject *tracer_add_code(PyObject *self, PyObject *args)
{
    PmlTracer *tracer = (PmlTracer *)self;
    PyObject *code, *parts = NULL;
    int first, last;
    if (!PyArg_ParseTuple(args, "O!ii|O!:add_code", &PyCode_Type, &code, &first, &last, &PyTuple_Type, &parts))
        return NULL;
    if (last < first || (int64_t)last - first >= MOST_LINES)
        return PyErr_Format(PyExc_ValueError, "lines %d to %d: a code object may span at most %d lines", first, last,
                            MOST_LINES);
    if (index_of(tracer, code) >= 0)
        Py_RETURN_FALSE;
    if (append_subscriber(tracer, code, first, last) < 0 || set_parts(code, parts) < 0)
        return NULL;
    update_events(tracer, code);
    Py_RETURN_TRUE;
}

/* Which profilers record has changed, or since when. */
static void regroup(const PmlTracer *tracer)
{
    pml_codes_regroup();
    for (PmlHook *hook = tracer->state->hooks; hook; hook = hook->next)
        for (int i = 0; i < hook->stack.depth; i++)
            pml_segment_recount(hook->stack.frame[i]);
}

static void record(PmlTracer *tracer, bool recording)
{
    struct pml_recorder *recorder = &tracer->recorder;
    if (recorder->recording == recording)
        return;
    struct pml_peak_picture *picture = tracer->holders ? &tracer->holders->picture : NULL;
    if (picture && recording)
        pml_picture_recording_start(picture, recorder);
    else if (picture)
        pml_picture_recording_stop(picture, recorder);
    recorder->recording = recording;
    if (recording)
        recorder->started = pml_moment_next();
    regroup(tracer);
    for (Py_ssize_t i = 0; tracer->codes && i < PyList_GET_SIZE(tracer->codes); i++)
        update_events(tracer, PyList_GET_ITEM(tracer->codes, i));
}

static void read_ends_of_line(const struct pml_line_table *table, const void *code, int index)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        struct pml_line_stats *stats = table->stats[1 + d];
        if (stats && stats[index].growth)
            pml_growth_figures_read_end(stats[index].growth, code, table->first_line + index, d);
    }
}

/* What each line holds now is what it holds at the end. */
static void read_ends(const PmlTracer *tracer)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracer->codes); i++) {
        const struct pml_line_table *table = tracer->subscriber[i]->table;
        for (int index = 0; index < table->lines; index++)
            read_ends_of_line(table, PyList_GET_ITEM(tracer->codes, i), index);
    }
}

static void start(PmlTracer *tracer)
{
    if (tracer->recorder.recording)
        return;
    pml_statistics_sync(tracer->state, tracer->recorder.stat_columns != 0);
    record(tracer, true);
}

static void stop(PmlTracer *tracer)
{
    if (!tracer->recorder.recording)
        return;
    pml_statistics_sync(tracer->state, tracer->recorder.stat_columns != 0);
    for (PmlHook *hook = tracer->state->hooks; hook; hook = hook->next) {
        tracer->recorder.interrupted |= pml_hook_displaced(hook);
        pml_segment_flush(&hook->stack, &tracer->recorder);
    }
    tracer->recorder.interrupted |= pml_monitoring_tool_displaced(tracer->state);
    tracer->recorder.unseen |= pml_allocator_events_displaced();
    read_ends(tracer);
    record(tracer, false);
}

void pml_tracer_enter(PmlTracer *tracer)
{
    if (tracer->entries++ == 0)
        start(tracer);
    tracer->state->enabled++;
}

void pml_tracer_leave(PmlTracer *tracer)
{
    if (--tracer->entries == 0)
        stop(tracer);
    tracer->state->enabled--;
}

static PyObject *tracer_start(PyObject *self, PyObject *unused)
{
    start((PmlTracer *)self);
    Py_RETURN_NONE;
}

static PyObject *tracer_stop(PyObject *self, PyObject *unused)
{
    stop((PmlTracer *)self);
    Py_RETURN_NONE;
}

static void clear_counters(PmlTracer *tracer)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracer->codes); i++) {
        pml_line_table_clear(tracer->subscriber[i]->table);
        if (tracer->subscriber[i]->saved)
            pml_saved_tables_clear(tracer->subscriber[i]->saved);
        tracer->subscriber[i]->calls = 0;
    }
    tracer->recorder.failed = tracer->recorder.interrupted = tracer->recorder.unseen = false;
    tracer->recorder.started = pml_moment_next();
    if (tracer->holders) {
        pml_picture_recording_clear(&tracer->holders->picture);
        regroup(tracer);
    }
}

static PyObject *tracer_clear_counters(PyObject *self, PyObject *unused)
{
    clear_counters((PmlTracer *)self);
    Py_RETURN_NONE;
}

/* ---- snapshots ---- */

static PyObject *tracer_snapshot(PyObject *self, PyObject *unused)
{
    PmlTracer *tracer = (PmlTracer *)self;
    if (tracer->recorder.recording)
        read_ends(tracer);
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(tracer->codes); i++) {
        PyObject *item = pml_snapshot_code(PyList_GET_ITEM(tracer->codes, i), tracer->subscriber[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *tracer_saved(PyObject *self, PyObject *unused)
{
    PmlTracer *tracer = (PmlTracer *)self;
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(tracer->codes); i++) {
        struct pml_saved_table *table = tracer->subscriber[i]->saved;
        if (!table)
            continue;
        tracer->recorder.failed |= pml_saved_tables_incomplete(table);
        PyObject *item = pml_saved_figures_new(PyList_GET_ITEM(tracer->codes, i), table);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* ---- the Python object ---- */

void pml_tracer_after_fork(struct pml_state *state)
{
    for (PmlTracer *tracer = state->tracers; tracer; tracer = tracer->next) {
        tracer->entries = 0;
        record(tracer, false);
        clear_counters(tracer);
    }
}

static int take_columns(struct pml_recorder *recorder, PyObject *columns)
{
    Py_ssize_t count = PyTuple_GET_SIZE(columns);
    recorder->stat_column_ids = calloc((size_t)count + 1, sizeof *recorder->stat_column_ids);
    if (!recorder->stat_column_ids) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        long id = PyLong_AsLong(PyTuple_GET_ITEM(columns, i));
        if (id < 0 || id >= pml_stat_columns_count()) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "%ld is not the id of a statistics column", id);
            return -1;
        }
        recorder->stat_column_ids[i] = (int)id;
    }
    recorder->stat_columns = (int)count;
    return 0;
}

static PyObject *tracer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"columns", "sample_runs", "holders", "saved_group", NULL};
    const struct pml_state *state = PyType_GetModuleState(type);
    PyObject *columns, *holders = NULL;
    long long sample_runs;
    int saved_group = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!L|O!i:Tracer", names, &PyTuple_Type, &columns, &sample_runs,
                                     state->holders_type, &holders, &saved_group))
        return NULL;
    PmlTracer *tracer = (PmlTracer *)type->tp_alloc(type, 0);
    if (!tracer)
        return NULL;
    tracer->state = PyType_GetModuleState(type);
    tracer->recorder.sample_runs = sample_runs;
    tracer->recorder.saved_group = saved_group;
    tracer->holders = (PmlHolders *)Py_XNewRef(holders);
    tracer->next = tracer->state->tracers;
    tracer->state->tracers = tracer;
    pml_recorders_add(&tracer->recorder);
    tracer->codes = PyList_New(0);
    if (!tracer->codes || take_columns(&tracer->recorder, columns) < 0)
        Py_CLEAR(tracer);
    return (PyObject *)tracer;
}

static int tracer_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PmlTracer *)self)->codes);
    Py_VISIT(((PmlTracer *)self)->holders);
    return 0;
}

static void drop_subscribers(PmlTracer *tracer)
{
    record(tracer, false);
    for (Py_ssize_t i = 0; tracer->codes && i < PyList_GET_SIZE(tracer->codes); i++)
        subscriber_free(PyList_GET_ITEM(tracer->codes, i), tracer->subscriber[i]);
    free(tracer->subscriber);
    tracer->subscriber = NULL;
}

static int tracer_clear(PyObject *self)
{
    PmlTracer *tracer = (PmlTracer *)self;
    drop_subscribers(tracer);
    Py_CLEAR(tracer->codes);
    Py_CLEAR(tracer->holders);
    return 0;
}

static void tracer_dealloc(PyObject *self)
{
    PmlTracer *tracer = (PmlTracer *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (PmlTracer **link = &tracer->state->tracers; *link; link = &(*link)->next)
        if (*link == tracer) {
            *link = tracer->next;
            break;
        }
    tracer_clear(self);
    pml_recorders_remove(&tracer->recorder);
    free(tracer->recorder.stat_column_ids);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_flag(PyObject *self, void *which)
{
    const PmlTracer *tracer = (PmlTracer *)self;
    const struct pml_recorder *recorder = &tracer->recorder;
    switch ((intptr_t)which) {
    case 0: return PyBool_FromLong(recorder->recording);
    case 1: return PyBool_FromLong(recorder->failed);
    case 2:
        return PyBool_FromLong(recorder->interrupted ||
                               (recorder->recording && pml_monitoring_tool_displaced(tracer->state)));
    default: return PyBool_FromLong(recorder->unseen || (recorder->recording && pml_allocator_events_displaced()));
    }
}

static PyGetSetDef tracer_getset[] = {
    {"recording", get_flag, NULL, "True between start and stop.", (void *)0},
    {"failed", get_flag, NULL, "True if memory ran out and figures are incomplete.", (void *)1},
    {"interrupted", get_flag, NULL, "True if another tracer replaced the hook while it was needed.", (void *)2},
    {"unseen", get_flag, NULL, "True if another tool took the allocators' calls meanwhile: events were missed.",
     (void *)3},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef tracer_methods[] = {
    {"add_code", tracer_add_code, METH_VARARGS,
     "add_code(code, first_line, last_line, parts=()) -> bool: count this code object; False if it was counted "
     "already. Parts: (start, end, line), instructions that run as a part of another line, or of none if it is 0."},
    {"start", tracer_start, METH_NOARGS, "Record segments that open from now on."},
    {"stop", tracer_stop, METH_NOARGS, "Record what is open, then no more."},
    {"clear", tracer_clear_counters, METH_NOARGS, "Set all counters to zero; the code objects stay."},
    {"snapshot", tracer_snapshot, METH_NOARGS, "All counters: a CodeCounts for each code object, in the order added."},
    {"saved", tracer_saved, METH_NOARGS, "What autograd kept: a SavedCode for each code object."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tracer_slots[] = {
    {Py_tp_doc, "Tracer(columns, sample_runs): line counters of one profiler."},
    {Py_tp_new, tracer_new},
    {Py_tp_methods, tracer_methods},
    {Py_tp_getset, tracer_getset},
    {Py_tp_traverse, tracer_traverse},
    {Py_tp_clear, tracer_clear},
    {Py_tp_dealloc, tracer_dealloc},
    {0, NULL},
};

PyType_Spec pml_tracer_spec = {
    .name = "pytorch_memlab_c._native.Tracer",
    .basicsize = sizeof(PmlTracer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = tracer_slots,
};
