/* The type Holders: who holds each device's memory at the highest moment of one profiler, or of a group of profilers
 * that share it. A code object is given by its id.
 *
 * Ownership: tracers own the Holders they record for. Needs the GIL.
 */
#include "types/holders_type.h"

#include <stdlib.h>

#include "cpython/named_tuples.h"
#include "holders/failures.h"
#include "holders/picture_recording.h"

static PyObject *holders_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":Holders", names))
        return NULL;
    PmlHolders *self = (PmlHolders *)type->tp_alloc(type, 0);
    if (self)
        self->picture.group = -1;
    return (PyObject *)self;
}

/* ---- what Python reads ---- */

static PyStructSequence_Field holder_fields[] = {
    {"code_id", "id of the code object, or 0"},
    {"line", "its number"},
    {"kind", "0: by the line itself; 1: in backward; 2: autograd with several lines"},
    {"bytes", "what it holds"},
    {NULL, NULL},
};
static struct pml_named_tuple holder_kind = PML_NAMED_TUPLE("LineHolder", "Bytes that a line holds.", holder_fields);

static PyStructSequence_Field peak_fields[] = {
    {"slot", "the device"},
    {"peak_bytes", "its highest value"},
    {"at", "the LineHolder of the line that ran then"},
    {"holders", "list of LineHolder"},
    {"events_per_point", "of the series"},
    {"series_bytes", "list: the value over the run"},
    {NULL, NULL},
};
static struct pml_named_tuple peak_kind = PML_NAMED_TUPLE("DevicePeak", "Who holds a device's peak.", peak_fields);

static PyStructSequence_Field failure_fields[] = {
    {"number", "from 1 on, in the whole process"},
    {"slot", "the device"},
    {"asked_bytes", "what was asked for"},
    {"allocated_bytes", NULL},
    {"active_bytes", NULL},
    {"reserved_bytes", "-1: not known"},
    {"unused_bytes", "what the device said was free; -1: not known"},
    {"total_bytes", "of the device; -1: not known"},
    {"at", "the LineHolder of the line that asked"},
    {"holders", "list of LineHolder"},
    {NULL, NULL},
};
static struct pml_named_tuple failure_kind =
    PML_NAMED_TUPLE("FailedAllocation", "An allocation that failed.", failure_fields);

static PyStructSequence_Field failures_fields[] = {
    {"number", "how many failed"},
    {"kept", "list of FailedAllocation: the first ones"},
    {NULL, NULL},
};
static struct pml_named_tuple failures_kind =
    PML_NAMED_TUPLE("FailedAllocations", "Allocations that failed.", failures_fields);

int pml_holders_type_add_types(PyObject *module)
{
    struct pml_named_tuple *kinds[] = {&holder_kind, &peak_kind, &failure_kind, &failures_kind};
    for (int i = 0; i < 4; i++)
        if (pml_named_tuples_add(module, kinds[i]) < 0)
            return -1;
    return 0;
}

static PyObject *holder_new(const struct pml_holder *holder)
{
    return pml_named_tuples_build(&holder_kind, "(KiiL)", (unsigned long long)(uintptr_t)holder->code, holder->line,
                                  (int)holder->kind, (long long)holder->bytes);
}

static PyObject *holder_list(const struct pml_holder_list *holders)
{
    PyObject *list = PyList_New(holders->count);
    for (int i = 0; list && i < holders->count; i++) {
        PyObject *holder = holder_new(&holders->holder[i]);
        if (holder)
            PyList_SET_ITEM(list, i, holder);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *series_list(const struct pml_series *series)
{
    PyObject *list = PyList_New(series->used);
    for (int i = 0; list && i < series->used; i++) {
        PyObject *value = PyLong_FromLongLong(series->value[i]);
        if (value)
            PyList_SET_ITEM(list, i, value);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *peak_new(int slot, const struct pml_peak *peak)
{
    PyObject *at = holder_new(&peak->at);
    PyObject *holders = at ? holder_list(&peak->list) : NULL;
    PyObject *series = holders ? series_list(&peak->series) : NULL;
    return pml_named_tuples_build(&peak_kind, "(iLNNLN)", slot, (long long)peak->peak, at, holders,
                                  (long long)peak->series.step, series);
}

static int append_peak(PyObject *list, struct pml_peak_picture *picture, int slot)
{
    struct pml_peak copy;
    if (!pml_picture_recording_copy(picture, slot, &copy))
        return 0;
    PyObject *tuple = peak_new(slot, &copy);
    free(copy.list.holder);
    int result = tuple ? PyList_Append(list, tuple) : -1;
    Py_XDECREF(tuple);
    return result;
}

static PyObject *holders_snapshot(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (int slot = 0; list && slot < PML_MAX_DEVICES; slot++)
        if (append_peak(list, &((PmlHolders *)self)->picture, slot) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *failure_new(const struct pml_failure *failure)
{
    PyObject *at = holder_new(&failure->at);
    PyObject *holders = at ? holder_list(&failure->list) : NULL;
    return pml_named_tuples_build(&failure_kind, "(KiLLLLLLNN)", (unsigned long long)failure->number, failure->device,
                                  (long long)failure->asked, (long long)failure->allocated, (long long)failure->active,
                                  (long long)failure->reserved, (long long)failure->unused, (long long)failure->total,
                                  at, holders);
}

static PyObject *holders_failures(PyObject *self, PyObject *unused)
{
    const struct pml_peak_picture *picture = &((PmlHolders *)self)->picture;
    PyObject *list = PyList_New(0);
    struct pml_failure failure;
    for (int i = 0; list && pml_failures_get(picture, i, &failure); i++) {
        PyObject *tuple = failure_new(&failure);
        if (!tuple || PyList_Append(list, tuple) < 0)
            Py_CLEAR(list);
        Py_XDECREF(tuple);
    }
    return pml_named_tuples_build(&failures_kind, "(iN)", pml_failures_count(picture), list);
}

PyObject *pml_holders_type_last_failure(PyObject *module, PyObject *unused)
{
    return PyLong_FromUnsignedLongLong(pml_failures_last());
}

static PyObject *holders_failed(PyObject *self, void *unused)
{
    return PyBool_FromLong(((PmlHolders *)self)->picture.failed);
}

static void holders_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pml_picture_recording_clear(&((PmlHolders *)self)->picture);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef holders_methods[] = {
    {"snapshot", holders_snapshot, METH_NOARGS, "A DevicePeak for each device on which something was seen."},
    {"failures", holders_failures, METH_NOARGS, "A FailedAllocations: the first ones in full."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef holders_getset[] = {
    {"failed", holders_failed, NULL, "True if memory ran out, or more than 64 profilers record: incomplete.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot holders_slots[] = {
    {Py_tp_doc, "Holders(): who holds the peak, for the tracers that share it."},
    {Py_tp_new, holders_new},
    {Py_tp_methods, holders_methods},
    {Py_tp_getset, holders_getset},
    {Py_tp_dealloc, holders_dealloc},
    {0, NULL},
};

PyType_Spec pml_holders_type_spec = {
    .name = "pytorch_memlab_c._native.Holders",
    .basicsize = sizeof(PmlHolders),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = holders_slots,
};
