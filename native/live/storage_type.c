/* The type `Storage`: one storage of live tensors, its bytes, where they are, and the tensors on it.
 *
 * There is one for each storage of a program while a report is made, so it is small: most have one tensor, held without
 * a list, and the collector does not look at it. Nothing that a tensor refers to refers to a Storage. Needs the GIL.
 */
#include "live/storage_type.h"

#include <structmember.h>

PyObject *pml_storage_type_new(PyTypeObject *type, unsigned long long key, unsigned long long address,
                               Py_ssize_t nbytes)
{
    PmlStorage *self = (PmlStorage *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->key = key;
    self->address = address;
    self->nbytes = self->counted = nbytes;
    return (PyObject *)self;
}

int pml_storage_type_share(PmlStorage *self, PyObject *tensor)
{
    if (!self->tensors) {
        self->tensors = Py_NewRef(tensor);
        return 0;
    }
    if (PyList_CheckExact(self->tensors))
        return PyList_Append(self->tensors, tensor);
    PyObject *list = PyList_New(2);
    if (!list)
        return -1;
    PyList_SET_ITEM(list, 0, self->tensors);
    PyList_SET_ITEM(list, 1, Py_NewRef(tensor));
    self->tensors = list;
    return 0;
}

PyObject *pml_storage_type_only_tensor(const PmlStorage *self)
{
    return self->tensors && !PyList_CheckExact(self->tensors) ? self->tensors : NULL;
}

static PyObject *storage_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "address", "nbytes", "bare", NULL};
    unsigned long long key, address;
    Py_ssize_t nbytes;
    PyObject *bare;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKnO:Storage", names, &key, &address, &nbytes, &bare))
        return NULL;
    PyObject *self = pml_storage_type_new(type, key, address, nbytes);
    if (self)
        ((PmlStorage *)self)->bare = Py_NewRef(bare);
    return self;
}

static PyObject *get_tensors(PyObject *object, void *unused)
{
    const PmlStorage *self = (PmlStorage *)object;
    if (self->tensors && PyList_CheckExact(self->tensors))
        return Py_NewRef(self->tensors);
    PyObject *list = PyList_New(0);
    if (list && self->tensors && PyList_Append(list, self->tensors) < 0)
        Py_CLEAR(list);
    return list;
}

/* A list of one is kept as that one. */
static int set_tensors(PyObject *object, PyObject *list, void *unused)
{
    if (!list || !PyList_CheckExact(list)) {
        PyErr_SetString(PyExc_TypeError, "tensors must be a list");
        return -1;
    }
    PyObject *kept = PyList_GET_SIZE(list) == 1 ? PyList_GET_ITEM(list, 0) : list;
    Py_XSETREF(((PmlStorage *)object)->tensors, Py_NewRef(kept));
    return 0;
}

static void storage_dealloc(PyObject *object)
{
    PmlStorage *self = (PmlStorage *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_CLEAR(self->tensors);
    Py_CLEAR(self->bare);
    type->tp_free(object);
    Py_DECREF(type);
}

#define FIELD(name, kind, flags, text) {#name, kind, offsetof(PmlStorage, name), flags, text}

static PyMemberDef members[] = {
    FIELD(key, T_ULONGLONG, READONLY, "Its identity."),
    FIELD(address, T_ULONGLONG, READONLY, "Where its memory begins; 0: it has none."),
    FIELD(nbytes, T_PYSSIZET, READONLY, "Its bytes."),
    FIELD(counted, T_PYSSIZET, 0, "The bytes that no other storage holds as well."),
    FIELD(block, T_PYSSIZET, 0, "Bytes of the allocator's block; 0 if the memory is not PyTorch's allocator's."),
    FIELD(bare, T_OBJECT, READONLY, "The storage itself if no tensor has it."),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"tensors", get_tensors, set_tensors, "The tensors on it, in the order found. May be empty.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot storage_slots[] = {
    {Py_tp_doc, "Storage(key, address, nbytes, bare): a storage that no tensor has."},
    {Py_tp_new, storage_new},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {Py_tp_dealloc, storage_dealloc},
    {0, NULL},
};

PyType_Spec pml_storage_type_spec = {
    .name = "pytorch_memlab_c._native.Storage",
    .basicsize = sizeof(PmlStorage),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = storage_slots,
};
