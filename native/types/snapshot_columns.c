/* The type `SnapshotColumn`: rows of a snapshot as a read-only buffer, which keeps the snapshot alive. */
#include "types/snapshot_columns.h"

typedef struct {
    PyObject_HEAD PyObject *owner;
    const void *start;
    Py_ssize_t bytes;
} PmlSnapshotColumn;

PyObject *pml_snapshot_columns_new(PyTypeObject *type, PyObject *owner, const void *start, size_t bytes)
{
    PmlSnapshotColumn *self = (PmlSnapshotColumn *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->owner = Py_NewRef(owner);
    self->start = start ? start : "";
    self->bytes = (Py_ssize_t)bytes;
    return (PyObject *)self;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PmlSnapshotColumn *column = (PmlSnapshotColumn *)self;
    return PyBuffer_FillInfo(view, self, (void *)column->start, column->bytes, 1, flags);
}

static Py_ssize_t length(PyObject *self)
{
    return ((PmlSnapshotColumn *)self)->bytes;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(((PmlSnapshotColumn *)self)->owner);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "Rows of a memory snapshot: a read-only buffer."},
    {Py_bf_getbuffer, get_buffer},
    {Py_sq_length, length},
    {Py_tp_dealloc, dealloc},
    {0, NULL},
};

PyType_Spec pml_snapshot_columns_spec = {
    .name = "pytorch_memlab_c._native.SnapshotColumn",
    .basicsize = sizeof(PmlSnapshotColumn),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
