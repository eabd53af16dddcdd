/* The type Storage: one storage of live tensors. Needs the GIL. */
#ifndef PML_STORAGE_TYPE_H
#define PML_STORAGE_TYPE_H

#include "cpython/compat.h"

extern PyType_Spec pml_storage_type_spec;

typedef struct {
    PyObject_HEAD unsigned long long key;
    unsigned long long address;
    Py_ssize_t nbytes;
    Py_ssize_t counted;
    Py_ssize_t block;
    PyObject *tensors; /* owned: NULL, the only one, or a list */
    PyObject *bare;    /* owned, or NULL */
} PmlStorage;

/* One without a tensor. A new reference. */
PyObject *pml_storage_type_new(PyTypeObject *type, unsigned long long key, unsigned long long address,
                               Py_ssize_t nbytes);
/* One more tensor. -1 with an exception set. */
int pml_storage_type_share(PmlStorage *self, PyObject *tensor);
/* The tensor of a storage that has one; else NULL. Borrowed. */
PyObject *pml_storage_type_only_tensor(const PmlStorage *self);

#endif
