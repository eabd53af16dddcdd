/* What `with` enters and leaves (see with_blocks.h). In C, since a signal handler may raise as soon as a Python
 * function begins, and `__exit__` would then not have done anything. The Python classes say what else is to be done.
 */
#include "types/with_blocks.h"

#include <stddef.h>
#include <structmember.h>

#include "types/entry.h"

static int call(PyObject *self, const char *method)
{
    PyObject *result = PyObject_CallMethod(self, method, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* The same, where an exception may be pending and no other can be raised. */
static void call_in_any_case(PyObject *self, const char *method)
{
    struct pml_compat_exception pending = pml_compat_exception_take();
    if (call(self, method) < 0)
        pml_compat_exception_drop();
    pml_compat_exception_put(pending);
}

/* ---- Switch: enable() and disable() of a profiler. The class has `_before_enable`, which returns its tracer, and
 * `_after_disable`, which may be called more often than it. ---- */

typedef struct {
    PyObject_HEAD PyObject *entries; /* list, the innermost last */
} PmlSwitch;

static PyObject *switch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PmlSwitch *self = (PmlSwitch *)type->tp_alloc(type, 0);
    if (self && !(self->entries = PyList_New(0)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int append_entry(PmlSwitch *self, PmlTracer *tracer)
{
    PyObject *entry = tracer ? pml_entry_new(tracer->state, tracer) : NULL;
    int result = entry ? PyList_Append(self->entries, entry) : -1;
    Py_XDECREF(entry);
    return result;
}

static int enable(PyObject *self)
{
    PyObject *tracer = PyObject_CallMethod(self, "_before_enable", NULL);
    int result = append_entry((PmlSwitch *)self, (PmlTracer *)tracer);
    Py_XDECREF(tracer);
    if (result < 0)
        call_in_any_case(self, "_after_disable");
    return result;
}

static PyObject *switch_enable(PyObject *self, PyObject *unused)
{
    if (enable(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *switch_enter(PyObject *self, PyObject *unused)
{
    return enable(self) < 0 ? NULL : Py_NewRef(self);
}

static bool enabled(const PmlSwitch *self)
{
    return PyList_GET_SIZE(self->entries) > 0;
}

static PyObject *switch_disable(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *entries = ((PmlSwitch *)self)->entries;
    Py_ssize_t there = PyList_GET_SIZE(entries);
    if (there == 0)
        Py_RETURN_NONE;
    if (PyList_SetSlice(entries, there - 1, there, NULL) < 0 || call(self, "_after_disable") < 0) {
        call_in_any_case(self, "_after_disable"); /* an interrupt, or no memory: it may not have been done */
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *switch_is_enabled(PyObject *self, void *unused)
{
    return PyBool_FromLong(enabled((PmlSwitch *)self));
}

static int switch_clear(PyObject *self)
{
    PyObject *entries = ((PmlSwitch *)self)->entries; /* the list itself stays: methods may be called still */
    return entries ? PyList_SetSlice(entries, 0, PyList_GET_SIZE(entries), NULL) : 0;
}

/* Dropped while it is enabled. */
static void switch_finalize(PyObject *self)
{
    if (!enabled((PmlSwitch *)self))
        return;
    switch_clear(self);
    call_in_any_case(self, "_after_disable");
}

static int switch_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PmlSwitch *)self)->entries);
    return 0;
}

static void switch_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((PmlSwitch *)self)->entries);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef switch_methods[] = {
    {"enable", switch_enable, METH_NOARGS,
     "enable($self, /)\n--\n\n"
     "Measure on this thread, and on threads that start from now on. Each `enable` needs its `disable`."},
    {"disable", (PyCFunction)(void (*)(void))switch_disable, METH_FASTCALL,
     "disable($self, /)\n--\n\n"
     "Undo one `enable`; without one it does nothing. A tracer that was there before is put back."},
    {"__enter__", switch_enter, METH_NOARGS, "`enable`."},
    {"__exit__", (PyCFunction)(void (*)(void))switch_disable, METH_FASTCALL, "`disable`."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef switch_getset[] = {
    {"enabled", switch_is_enabled, NULL, "Whether it measures.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot switch_slots[] = {
    {Py_tp_doc, "What a profiler's `enable` and `disable` switch."},
    {Py_tp_new, switch_new},
    {Py_tp_methods, switch_methods},
    {Py_tp_getset, switch_getset},
    {Py_tp_traverse, switch_traverse},
    {Py_tp_clear, switch_clear},
    {Py_tp_finalize, switch_finalize},
    {Py_tp_dealloc, switch_dealloc},
    {0, NULL},
};

PyType_Spec pml_with_blocks_switch_spec = {
    .name = "pytorch_memlab_c._native.Switch",
    .basicsize = sizeof(PmlSwitch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = switch_slots,
};

/* ---- WindowBlock: a block of code with a window of its own. The class has `_begin` and `_end`. ---- */

typedef struct {
    PyObject_HEAD PyObject *window; /* a PeakWindow */
} PmlWindowBlock;

static PyObject *block_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return type->tp_alloc(type, 0);
}

static PyObject *block_enter(PyObject *self, PyObject *unused)
{
    if (call(self, "_begin") < 0)
        return NULL;
    PyObject *window = ((PmlWindowBlock *)self)->window;
    if (!window || call(window, "open") < 0) {
        call_in_any_case(self, "_end");
        return NULL;
    }
    return Py_NewRef(self);
}

static PyObject *block_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *window = ((PmlWindowBlock *)self)->window;
    if (window && call(window, "close") < 0) {
        call_in_any_case(self, "_end");
        return NULL;
    }
    if (call(self, "_end") < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int block_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PmlWindowBlock *)self)->window);
    return 0;
}

static int block_clear(PyObject *self)
{
    Py_CLEAR(((PmlWindowBlock *)self)->window);
    return 0;
}

static void block_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    block_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef block_members[] = {
    {"_window", T_OBJECT_EX, offsetof(PmlWindowBlock, window), 0, "A PeakWindow, open within the block."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef block_methods[] = {
    {"__enter__", block_enter, METH_NOARGS, "Begin the block."},
    {"__exit__", (PyCFunction)(void (*)(void))block_exit, METH_FASTCALL, "End it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "A `with` block that opens and closes a window."},
    {Py_tp_new, block_new},
    {Py_tp_methods, block_methods},
    {Py_tp_members, block_members},
    {Py_tp_traverse, block_traverse},
    {Py_tp_clear, block_clear},
    {Py_tp_dealloc, block_dealloc},
    {0, NULL},
};

PyType_Spec pml_with_blocks_window_spec = {
    .name = "pytorch_memlab_c._native.WindowBlock",
    .basicsize = sizeof(PmlWindowBlock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = block_slots,
};
