/* The type Entry (see entry.h). Freeing one undoes what it stands for. Python refuses calls at its recursion limit, and
 * raises what signal handlers raise between two calls; but to delete an item of a list is no call: `del entries[:]` in
 * a `finally` always leaves.
 *
 * Ownership: an entry owns its hook and its tracer. One that is freed by another thread takes effect at the next event
 * of its own. In the child of a fork the entries of the parent mean nothing.
 */
#include "types/entry.h"

#include "lines/recorders.h"
#include "trace/hook.h"

typedef struct {
    PyObject_HEAD struct pml_state *state; /* the type keeps it alive */
    PmlHook *hook;
    PmlTracer *tracer; /* or NULL: of functions that are decorated */
    uint64_t forks;    /* `pml_state.forks` when it was made */
} PmlEntry;

PyObject *pml_entry_new(struct pml_state *state, PmlTracer *tracer)
{
    PmlEntry *entry = (PmlEntry *)state->entry_type->tp_alloc(state->entry_type, 0);
    if (!entry)
        return NULL;
    entry->state = state;
    entry->forks = state->forks;
    if (tracer) {
        entry->tracer = (PmlTracer *)Py_NewRef((PyObject *)tracer);
        pml_tracer_enter(tracer);
    }
    entry->hook = (PmlHook *)pml_hook_enter(state);
    if (!entry->hook) {
        PyErr_Clear(); /* the program goes on unprofiled */
        pml_recorders_fail();
    }
    return (PyObject *)entry;
}

static void leave(PmlEntry *entry)
{
    bool own = entry->forks == entry->state->forks; /* not one that the parent made */
    PmlHook *hook = entry->hook;
    PmlTracer *tracer = entry->tracer;
    entry->hook = NULL;
    entry->tracer = NULL;
    if (tracer && own)
        pml_tracer_leave(tracer);
    if (hook && own)
        pml_hook_leave(hook);
    Py_XDECREF(tracer);
    Py_XDECREF(hook);
}

static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PmlEntry *)self)->hook);
    Py_VISIT(((PmlEntry *)self)->tracer);
    return 0;
}

static int entry_clear(PyObject *self)
{
    struct pml_compat_exception pending = pml_compat_exception_take();
    leave((PmlEntry *)self);
    pml_compat_exception_put(pending);
    return 0;
}

static void entry_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot entry_slots[] = {
    {Py_tp_doc, "The hook of one thread is installed as long as this lives."},
    {Py_tp_traverse, entry_traverse},
    {Py_tp_clear, entry_clear},
    {Py_tp_dealloc, entry_dealloc},
    {0, NULL},
};

PyType_Spec pml_entry_spec = {
    .name = "pytorch_memlab_c._native.Entry",
    .basicsize = sizeof(PmlEntry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = entry_slots,
};

/* ---- for Python ---- */

PyObject *pml_entry_enter(PyObject *module, PyObject *entries)
{
    struct pml_state *state = pml_state_of(module);
    if (!PyList_Check(entries))
        return PyErr_Format(PyExc_TypeError, "enter: a list, not %R", entries);
    PyObject *entry = pml_entry_new(state, NULL);
    if (!entry || PyList_Append(entries, entry) < 0) {
        PyErr_Clear();
        pml_recorders_fail();
    }
    Py_XDECREF(entry);
    Py_RETURN_NONE;
}

PyObject *pml_entry_adopt_thread(PyObject *module, PyObject *unused)
{
    if (pml_hook_adopt(pml_state_of(module)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *pml_entry_any_enabled(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(pml_state_of(module)->enabled);
}
