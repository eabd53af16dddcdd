/* The type PeakWindow: the peak of each device between `open` and `close`, read at any time.
 *
 * An independent window in the list of open windows: it may overlap others in any way, on any thread. Closing freezes
 * its figures; so does a fork, for the child. Needs the GIL.
 */
#include "types/peak_window.h"

#include "cpython/arguments.h"
#include "cpython/named_tuples.h"
#include "meter/window.h"
#include "trace/statistics.h"

typedef struct {
    PyObject_HEAD struct pml_state *state; /* the type keeps it alive */
    struct pml_window window;
    int64_t last[PML_MAX_DEVICES][PML_METRICS]; /* levels when it was closed */
} PmlPeakWindow;

static PyObject *window_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":PeakWindow", names))
        return NULL;
    PmlPeakWindow *self = (PmlPeakWindow *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->state = PyType_GetModuleState(type);
    self->window.next = self->window.prev = &self->window;
    return (PyObject *)self;
}

/* Linked is open: a fork closes the child's windows by unlinking them. */
static bool is_open(const PmlPeakWindow *self)
{
    return self->window.next != &self->window;
}

static void read_levels(int64_t last[PML_MAX_DEVICES][PML_METRICS])
{
    for (int d = 0; d < pml_meter_devices(); d++) {
        struct pml_levels now;
        pml_meter_read(d, &now);
        for (int m = 0; m < PML_METRICS; m++)
            last[d][m] = now.level[m];
    }
}

static PyObject *window_open(PyObject *object, PyObject *unused)
{
    PmlPeakWindow *self = (PmlPeakWindow *)object;
    pml_statistics_sync(self->state, false);
    if (is_open(self)) /* asked after settling, which may let another thread run */
        return PyErr_Format(PyExc_RuntimeError, "this window is open already");
    pml_window_restart(&self->window);
    pml_window_link(&self->window);
    read_levels(self->last);
    Py_RETURN_NONE;
}

static PyObject *window_close(PyObject *object, PyObject *unused)
{
    PmlPeakWindow *self = (PmlPeakWindow *)object;
    pml_statistics_sync(self->state, false);
    if (is_open(self))
        read_levels(self->last);
    pml_window_unlink(&self->window);
    Py_RETURN_NONE;
}

/* What came between the fold and the reading is in the levels only. */
static int64_t peak_of(const struct pml_span *span, int metric, const int64_t last[PML_METRICS])
{
    return span->peak[metric] > last[metric] ? span->peak[metric] : last[metric];
}

static PyStructSequence_Field figures_fields[] = {
    {"start_active_bytes", "at the start"},
    {"start_allocated_bytes", NULL},
    {"start_reserved_bytes", NULL},
    {"peak_active_bytes", "the highest since"},
    {"peak_allocated_bytes", NULL},
    {"peak_reserved_bytes", NULL},
    {"end_active_bytes", "now, or when it was closed"},
    {"end_allocated_bytes", NULL},
    {"end_reserved_bytes", NULL},
    {NULL, NULL},
};
static struct pml_named_tuple figures_kind =
    PML_NAMED_TUPLE("WindowFigures", "A device's levels at a window's start, peak and end.", figures_fields);

int pml_peak_window_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &figures_kind);
}

static PyObject *figures_new(const PmlPeakWindow *self, int slot)
{
    static const struct pml_span nothing;
    const struct pml_span *span = slot < self->window.devices ? &self->window.span[slot] : &nothing;
    const int64_t *start = span->start.level, *last = self->last[slot];
    return pml_named_tuples_build(
        &figures_kind, "(LLLLLLLLL)", (long long)start[PML_ACTIVE], (long long)start[PML_ALLOCATED],
        (long long)start[PML_RESERVED], (long long)peak_of(span, PML_ACTIVE, last),
        (long long)peak_of(span, PML_ALLOCATED, last), (long long)peak_of(span, PML_RESERVED, last),
        (long long)last[PML_ACTIVE], (long long)last[PML_ALLOCATED], (long long)last[PML_RESERVED]);
}

static PyObject *window_figures(PyObject *object, PyObject *device)
{
    PmlPeakWindow *self = (PmlPeakWindow *)object;
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    if (is_open(self))
        pml_statistics_sync(self->state, false);
    if (is_open(self))
        read_levels(self->last);
    return figures_new(self, slot);
}

static PyObject *window_is_open(PyObject *self, void *unused)
{
    return PyBool_FromLong(is_open((PmlPeakWindow *)self));
}

static void window_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pml_window_unlink(&((PmlPeakWindow *)self)->window);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef window_methods[] = {
    {"open", window_open, METH_NOARGS, "Restart from the present levels."},
    {"close", window_close, METH_NOARGS, "Freeze the figures; does nothing the second time."},
    {"figures", window_figures, METH_O,
     "figures(slot) -> bytes: active, allocated, reserved at the start; the same at their peaks; the same now, or when "
     "it was closed."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef window_getset[] = {
    {"is_open", window_is_open, NULL, "True between open and close.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot window_slots[] = {
    {Py_tp_doc, "PeakWindow(): the peaks of all devices between open and close."},
    {Py_tp_new, window_new},
    {Py_tp_methods, window_methods},
    {Py_tp_getset, window_getset},
    {Py_tp_dealloc, window_dealloc},
    {0, NULL},
};

PyType_Spec pml_peak_window_spec = {
    .name = "pytorch_memlab_c._native.PeakWindow",
    .basicsize = sizeof(PmlPeakWindow),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = window_slots,
};
