/* The type `SnapshotData`: one memory snapshot, read from a callable that fills a buffer. Its rows are buffers, and
 * never change. Needs the GIL throughout.
 */
#include "types/snapshot_data.h"

#include "snapshot/pickle.h"
#include "snapshot/replay.h"
#include "types/snapshot_columns.h"
#include "types/snapshot_objects.h"
#include "types/snapshot_replays.h"
#include "types/snapshot_struct.h"

static const char *const troubles[] = {
    [PML_FINE] = "fine",
    [PML_TROUBLE_EMPTY] = "empty",
    [PML_TROUBLE_CUT_OFF] = "cut off",
    [PML_TROUBLE_NO_PICKLE] = "no pickle",
    [PML_TROUBLE_GLOBAL] = "global",
    [PML_TROUBLE_NOT_PLAIN] = "not plain",
    [PML_TROUBLE_DAMAGED] = "damaged",
    [PML_TROUBLE_TOO_MUCH] = "too much",
};

/* ValueError(what, offset, detail): Python makes a sentence of it. */
static void raise_trouble(const char *what, const struct pml_pickle *pickle)
{
    PyObject *args = Py_BuildValue("(sKs)", what, (unsigned long long)pickle->offset, pickle->detail);
    if (args)
        PyErr_SetObject(PyExc_ValueError, args);
    Py_XDECREF(args);
}

/* `readinto(memoryview)`: how many bytes were read. */
static int64_t read_some(void *arg, void *into, size_t most)
{
    int64_t got = -1;
    PyObject *view = PyMemoryView_FromMemory(into, (Py_ssize_t)most, PyBUF_WRITE);
    PyObject *answer = view ? PyObject_CallOneArg(arg, view) : NULL;
    if (answer)
        got = PyLong_AsLongLong(answer);
    if (view) { /* nobody may write to it later */
        struct pml_compat_exception pending = pml_compat_exception_take();
        Py_XDECREF(PyObject_CallMethod(view, "release", NULL));
        PyErr_Clear();
        pml_compat_exception_put(pending);
    }
    Py_XDECREF(answer);
    Py_XDECREF(view);
    return got;
}

static int read_all(PmlSnapshotData *self)
{
    bool failed = false;
    enum pml_trouble trouble = pml_pickle_read(&self->pickle);
    if (trouble == PML_TROUBLE_READ) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the reader returned no number of bytes");
        return -1;
    }
    if (trouble == PML_TROUBLE_NO_MEMORY)
        return PyErr_NoMemory(), -1;
    if (trouble)
        return raise_trouble(troubles[trouble], &self->pickle), -1;
    if (!pml_contents_find(&self->contents, &self->pickle, &failed) && !failed)
        return raise_trouble("no snapshot", &self->pickle), -1;
    if (failed)
        return PyErr_NoMemory(), -1;
    return 0;
}

static int finish(PmlSnapshotData *self)
{
    size_t traces = self->contents.traces.used;
    self->other = pml_snapshot_objects_make(&self->pickle, self->pickle.root, 0);
    self->replays = PyMem_Calloc(traces + 1, sizeof *self->replays);
    self->replayed = PyMem_Calloc(traces + 1, sizeof *self->replayed);
    pml_pickle_finish(&self->pickle);
    pml_values_drop(&self->pickle.values);
    if (!self->other)
        return -1;
    return self->replays && self->replayed ? 0 : (PyErr_NoMemory(), -1);
}

static PyObject *snapshot_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"readinto", NULL};
    PyObject *readinto;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:SnapshotData", names, &readinto))
        return NULL;
    PmlSnapshotData *self = (PmlSnapshotData *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    PyObject *module = PyType_GetModule(type);
    self->column_type = module ? (PyTypeObject *)PyObject_GetAttrString(module, "SnapshotColumn") : NULL;
    bool ready = self->column_type && pml_pickle_init(&self->pickle, read_some, readinto);
    if (!ready && !PyErr_Occurred())
        PyErr_NoMemory();
    if (!ready || read_all(self) < 0 || finish(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    PmlSnapshotData *self = (PmlSnapshotData *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (size_t i = 0; self->replays && self->replayed && i < self->contents.traces.used; i++)
        if (self->replayed[i])
            pml_replay_drop(&self->replays[i]);
    PyMem_Free(self->replays);
    PyMem_Free(self->replayed);
    pml_contents_drop(&self->contents);
    pml_pickle_drop(&self->pickle);
    Py_CLEAR(self->other);
    Py_CLEAR(self->column_type);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- what all traces share ---- */

static PyObject *names(PyObject *object, PyObject *unused)
{
    const struct pml_names *names = &((PmlSnapshotData *)object)->pickle.rows.names;
    PyObject *list = PyList_New((Py_ssize_t)names->entries.used);
    for (size_t i = 0; list && i < names->entries.used; i++) {
        PyObject *text = pml_snapshot_objects_text(names, (uint32_t)i);
        if (!text)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *settings(PyObject *object, PyObject *unused)
{
    const struct pml_rows *rows = &((PmlSnapshotData *)object)->pickle.rows;
    PyObject *list = PyList_New((Py_ssize_t)rows->settings.used);
    for (size_t i = 0; list && i < rows->settings.used; i++) {
        const struct pml_setting *setting = &rows->settings.items[i];
        PyObject *entry = Py_BuildValue("(LLLII)", (long long)setting->stream, (long long)setting->pool[0],
                                        (long long)setting->pool[1], setting->context, setting->metadata);
        if (!entry)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, entry);
    }
    return list;
}

static PyObject *unknown(PyObject *object, PyObject *unused)
{
    const struct pml_rows *rows = &((PmlSnapshotData *)object)->pickle.rows;
    PyObject *list = PyList_New((Py_ssize_t)rows->unknown.used);
    for (size_t i = 0; list && i < rows->unknown.used; i++) {
        PyObject *text = pml_snapshot_objects_text(&rows->names, rows->unknown.items[i]);
        if (!text)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *devices(PyObject *object, PyObject *unused)
{
    const struct pml_contents *contents = &((PmlSnapshotData *)object)->contents;
    PyObject *list = PyList_New((Py_ssize_t)contents->traces.used);
    for (size_t i = 0; list && i < contents->traces.used; i++) {
        PyObject *number = PyLong_FromLong(contents->traces.items[i].device);
        if (!number)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, number);
    }
    return list;
}

#define COLUMN(name, vector) \
    static PyObject *name(PyObject *object, PyObject *unused) \
    { \
        PmlSnapshotData *self = (PmlSnapshotData *)object; \
        return pml_snapshot_columns_new(self->column_type, object, self->pickle.rows.vector.items, \
                                        self->pickle.rows.vector.used * sizeof *self->pickle.rows.vector.items); \
    }

COLUMN(frames, stacks.frames)
COLUMN(stacks, stacks.stacks)
COLUMN(members, stacks.members)
COLUMN(segments, segments)
COLUMN(blocks, blocks)

static PyObject *get_other(PyObject *object, void *unused)
{
    return Py_NewRef(((PmlSnapshotData *)object)->other);
}

static PyObject *get_timed(PyObject *object, void *unused)
{
    return PyBool_FromLong(((PmlSnapshotData *)object)->pickle.rows.timed);
}

static PyObject *get_has_segments(PyObject *object, void *unused)
{
    return PyBool_FromLong(((PmlSnapshotData *)object)->contents.has_segments);
}

static PyMethodDef methods[] = {
    {"names", names, METH_NOARGS, "All texts; rows have their numbers."},
    {"settings", settings, METH_NOARGS, "(stream, pool, pool, compile context, metadata), the last two as names."},
    {"unknown", unknown, METH_NOARGS, "Keys and actions of events that are not known."},
    {"devices", devices, METH_NOARGS, "The device of each trace; -1: pinned host memory."},
    {"frames", frames, METH_NOARGS, "Rows of (function, file, line): names, and a 32-bit integer."},
    {"stacks", stacks, METH_NOARGS, "Rows of (first, count): where a stack's frames are in `members`."},
    {"members", members, METH_NOARGS, "Frames of stacks, the innermost first."},
    {"segments", segments, METH_NOARGS, "The segments at the end, of all devices."},
    {"blocks", blocks, METH_NOARGS, "The blocks of segments at the end."},
    {"events", pml_snapshot_replays_events, METH_O, "The events of a trace."},
    {"replay", pml_snapshot_replays_replay, METH_O,
     "(levels at the start, levels in the file, events, lost, guessed, unequal)."},
    {"allocations", pml_snapshot_replays_allocations, METH_O, "The allocations of a trace."},
    {"peaks", pml_snapshot_replays_peaks, METH_O,
     "Of allocated, active, reserved, and the end: the levels and the moment."},
    {"stretches", pml_snapshot_replays_stretches, METH_VARARGS, "(trace, ends): the extremes between moments."},
    {"spans", pml_snapshot_replays_spans, METH_VARARGS, "(trace, moment): memory taken from the device then."},
    {"figures", pml_snapshot_replays_figures, METH_VARARGS,
     "(trace, group of each stack, groups, stretches): figures, lows."},
    {"expandable", pml_snapshot_replays_expandable, METH_VARARGS,
     "(trace, moments): what expandable segments would reserve."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"other", get_other, NULL, "What the file has besides rows, as plain objects.", NULL},
    {"timed", get_timed, NULL, "Whether events have times.", NULL},
    {"has_segments", get_has_segments, NULL, "Whether the file says what is there at the end.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "SnapshotData(readinto): a memory snapshot of PyTorch. ValueError(what, offset, detail) if it is none."},
    {Py_tp_new, snapshot_new},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_dealloc, dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pytorch_memlab_c._native.SnapshotData",
    .basicsize = sizeof(PmlSnapshotData),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static int add_type(PyObject *module, PyType_Spec *wanted)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, wanted, NULL);
    int done = type ? PyModule_AddType(module, type) : -1;
    Py_XDECREF(type);
    return done;
}

int pml_snapshot_data_add_types(PyObject *module)
{
    return add_type(module, &spec) < 0 ? -1 : add_type(module, &pml_snapshot_columns_spec);
}
