/* Storages of live tensors, and what is done with all of them at once. Needs the GIL throughout. */
#ifndef PML_STORAGES_H
#define PML_STORAGES_H

#include "cpython/state.h"

typedef struct {
    PyObject_HEAD
    unsigned long long key;
    unsigned long long address;
    Py_ssize_t nbytes;
    Py_ssize_t counted;
    Py_ssize_t block;
    PyObject *tensors; /* owned: NULL, the only one, or a list */
    PyObject *bare;    /* owned, or NULL */
} PmlStorage;

/* One without a tensor. A new reference. */
PyObject *pml_storage_type_new(PyTypeObject *type, unsigned long long key, unsigned long long address, Py_ssize_t nbytes);
/* One more tensor. -1 with an exception set. */
int pml_storage_type_share(PmlStorage *self, PyObject *tensor);
/* The tensor of a storage that has one; else NULL. Borrowed. */
PyObject *pml_storage_type_only_tensor(const PmlStorage *self);

/* storage_walk.c: the answer of a question to an object, None where there was an `Exception`; NULL for what must not be
 * swallowed. */
PyObject *pml_storage_walk_try(PyObject *question, PyObject *object);

#endif
