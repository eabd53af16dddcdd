/* What a memory report does with all storages at once: entering tensors, counting bytes once, summing up, and putting
 * the largest first. With many tensors it takes most of a report's time.
 *
 * Needs the GIL. Lists given by Python may hold Storage objects only; they are read in one go, without running code.
 */
#include "live/storages.h"

#include "cpython/named_tuples.h"
#include "cpython/state.h"
#include "live/storage_type.h"
#include "live/storage_walk.h"

#include <stdlib.h>

#include "meter/cpu_blocks.h"

/* ---- entering tensors ---- */

struct entering {
    PyTypeObject *type;
    PyObject *storages;                                               /* dict: key to Storage */
    PyObject *devices;                                                /* mapping: device to the list of its storages */
    PyObject *handle_of, *key_of, *device_of, *address_of, *bytes_of; /* questions */
    PyObject *without;                                                /* list: tensors that have no storage */
    PyObject *unbacked; /* list: tensors whose storage has a size and no memory */
};

/* 0 for what is no integer. */
static unsigned long long number(PyObject *answer)
{
    return PyLong_Check(answer) ? PyLong_AsUnsignedLongLongMask(answer) : 0;
}

static int list_by_device(const struct entering *e, PyObject *handle, PyObject *storage)
{
    PyObject *device = pml_storage_walk_try(e->device_of, handle);
    PyObject *list = device ? PyObject_GetItem(e->devices, device) : NULL;
    Py_XDECREF(device);
    int failed = list ? PyList_Append(list, storage) : -1;
    Py_XDECREF(list);
    return failed;
}

/* Without memory there are no bytes, whatever it says. */
static Py_ssize_t bytes_of(const struct entering *e, PyObject *handle, PyObject *tensor, bool backed)
{
    PyObject *answer = pml_storage_walk_try(e->bytes_of, handle);
    if (!answer)
        return -1;
    unsigned long long said = number(answer);
    Py_ssize_t nbytes = backed && said <= (unsigned long long)PY_SSIZE_T_MAX ? (Py_ssize_t)said : 0;
    bool says = answer != Py_None && !(PyLong_Check(answer) && said == 0);
    Py_DECREF(answer);
    return !backed && says && PyList_Append(e->unbacked, tensor) < 0 ? -1 : nbytes;
}

static int open_storage(const struct entering *e, PyObject *key, PyObject *handle, PyObject *tensor)
{
    PyObject *answer = pml_storage_walk_try(e->address_of, tensor);
    if (!answer)
        return -1;
    unsigned long long address = number(answer);
    Py_DECREF(answer);
    Py_ssize_t nbytes = bytes_of(e, handle, tensor, address != 0);
    PyObject *storage = nbytes < 0 ? NULL : pml_storage_type_new(e->type, number(key), address, nbytes);
    int failed = !storage || pml_storage_type_share((PmlStorage *)storage, tensor) < 0 ||
                 PyDict_SetItem(e->storages, key, storage) < 0 || list_by_device(e, handle, storage) < 0;
    Py_XDECREF(storage);
    return failed ? -1 : 0;
}

static int enter_at(const struct entering *e, PyObject *key, PyObject *handle, PyObject *tensor)
{
    if (!PyLong_CheckExact(key))
        return PyList_Append(e->without, tensor);
    PyObject *known = PyDict_GetItemWithError(e->storages, key);
    if (known && Py_IS_TYPE(known, e->type))
        return pml_storage_type_share((PmlStorage *)known, tensor);
    return PyErr_Occurred() ? -1 : open_storage(e, key, handle, tensor);
}

static int enter(const struct entering *e, PyObject *tensor)
{
    PyObject *handle = pml_storage_walk_try(e->handle_of, tensor);
    PyObject *key = !handle ? NULL : handle == Py_None ? Py_NewRef(handle) : pml_storage_walk_try(e->key_of, handle);
    int failed = key ? enter_at(e, key, handle, tensor) : -1;
    Py_XDECREF(key);
    Py_XDECREF(handle);
    return failed;
}

/* enter_tensors(tensors, storages, devices, (handle, key, device, address, bytes)) -> (tensors without a storage,
 * tensors whose storage has a size and no memory). New storages are added to the dict `storages` and to the list of
 * their device, `devices[device]`; tensors that share one to that. The questions are asked as by `try_each`: the handle
 * and the address of the tensor, the others of the handle. */
PyObject *pml_storages_enter_tensors(PyObject *module, PyObject *args)
{
    PyObject *tensors;
    struct entering e = {.type = pml_state_of(module)->storage_type};
    if (!PyArg_ParseTuple(args, "O!O!O(OOOOO):enter_tensors", &PyList_Type, &tensors, &PyDict_Type, &e.storages,
                          &e.devices, &e.handle_of, &e.key_of, &e.device_of, &e.address_of, &e.bytes_of))
        return NULL;
    PyObject *result = Py_BuildValue("([][])");
    if (!result)
        return NULL;
    e.without = PyTuple_GET_ITEM(result, 0);
    e.unbacked = PyTuple_GET_ITEM(result, 1);
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(tensors); i++) {
        PyObject *tensor = Py_NewRef(PyList_GET_ITEM(tensors, i));
        if (enter(&e, tensor) < 0)
            Py_CLEAR(result);
        Py_DECREF(tensor);
    }
    return result;
}

/* ---- all storages of a list ---- */

/* Whether a list holds nothing but storages; an exception is set where not. */
static bool are_storages(PyObject *module, PyObject *list)
{
    PyTypeObject *type = pml_state_of(module)->storage_type;
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "a list of Storage objects is needed");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (Py_IS_TYPE(PyList_GET_ITEM(list, i), type))
            continue;
        PyErr_Format(PyExc_TypeError, "a Storage is needed, not %R", Py_TYPE(PyList_GET_ITEM(list, i)));
        return false;
    }
    return true;
}

static PmlStorage *storage_at(PyObject *list, Py_ssize_t i)
{
    return (PmlStorage *)PyList_GET_ITEM(list, i);
}

/* A storage in an order: by the first number, then by the second, both rising. */
struct placed {
    uint64_t first, second;
    PyObject *storage; /* borrowed */
};

static int compare(const void *a, const void *b)
{
    const struct placed *p = a, *q = b;
    if (p->first != q->first)
        return p->first < q->first ? -1 : 1;
    return p->second < q->second ? -1 : p->second > q->second;
}

/* Put a list in an order. -1 with an exception set. */
static int put_in_order(PyObject *list, struct placed (*place)(PmlStorage *storage, Py_ssize_t at))
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    struct placed *all = PyMem_RawMalloc((size_t)(count ? count : 1) * sizeof *all);
    if (!all) {
        PyErr_NoMemory();
        return -1;
    }
    bool ordered = true;
    for (Py_ssize_t i = 0; i < count; i++) {
        all[i] = place(storage_at(list, i), i);
        ordered = ordered && (i == 0 || compare(&all[i - 1], &all[i]) <= 0);
    }
    if (!ordered)
        qsort(all, (size_t)count, sizeof *all, compare);
    for (Py_ssize_t i = 0; i < count; i++)
        PyList_SET_ITEM(list, i, all[i].storage); /* the same ones: references stay as they are */
    PyMem_RawFree(all);
    return 0;
}

static struct placed by_address(PmlStorage *storage, Py_ssize_t at)
{
    return (struct placed){storage->address, UINT64_MAX - (uint64_t)storage->nbytes, (PyObject *)storage};
}

static struct placed largest_first(PmlStorage *storage, Py_ssize_t at)
{
    return (struct placed){UINT64_MAX - (uint64_t)storage->counted, (uint64_t)at, (PyObject *)storage};
}

/* count_once(storages): put them in the order of their addresses, and set `counted`: bytes that several have (DLPack,
 * `torch.from_numpy` of one array twice) are those of the first. */
PyObject *pml_storages_count_once(PyObject *module, PyObject *storages)
{
    if (!are_storages(module, storages) || put_in_order(storages, by_address) < 0)
        return NULL;
    unsigned long long end = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(storages); i++) {
        PmlStorage *storage = storage_at(storages, i);
        unsigned long long begin = storage->address, mine = begin + (unsigned long long)storage->nbytes;
        if (begin && begin < end)
            storage->counted = mine > end ? (Py_ssize_t)(mine - end) : 0;
        end = mine > end ? mine : end;
    }
    Py_RETURN_NONE;
}

/* set_cpu_blocks(storages): set `block` to that of PyTorch's CPU allocator, where there are bytes counted. */
PyObject *pml_storages_set_cpu_blocks(PyObject *module, PyObject *storages)
{
    if (!are_storages(module, storages))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(storages); i++) {
        PmlStorage *storage = storage_at(storages, i);
        const void *address = (const void *)(uintptr_t)storage->address;
        storage->block = storage->counted ? (Py_ssize_t)pml_cpu_blocks_size(address) : 0;
    }
    Py_RETURN_NONE;
}

static PyStructSequence_Field sums_fields[] = {
    {"counted_bytes", "of all storages"},
    {"block_bytes", "of their allocator's blocks"},
    {"without_block_bytes", "counted, of those that have no block"},
    {NULL, NULL},
};
static struct pml_named_tuple sums_kind = PML_NAMED_TUPLE("StorageSums", "Bytes of many storages.", sums_fields);

int pml_storages_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &sums_kind);
}

/* sum_storages(storages) -> StorageSums. */
PyObject *pml_storages_sum(PyObject *module, PyObject *storages)
{
    if (!are_storages(module, storages))
        return NULL;
    long long counted = 0, blocks = 0, elsewhere = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(storages); i++) {
        const PmlStorage *storage = storage_at(storages, i);
        counted += storage->counted;
        blocks += storage->block;
        elsewhere += storage->block ? 0 : storage->counted;
    }
    return pml_named_tuples_build(&sums_kind, "(LLL)", counted, blocks, elsewhere);
}

/* The tensor of a storage that can have no row any more: it is its only one, and has bytes. */
static PyObject *without_row(const PmlStorage *storage)
{
    return storage->counted ? pml_storage_type_only_tensor(storage) : NULL;
}

/* largest_first(storages, rows) -> (storages, the largest first; tensors left out). Left out are those that can have no
 * row: they have one tensor each, bytes, and as many larger ones before them as there are rows. Most of a large
 * program's are such. */
PyObject *pml_storages_largest_first(PyObject *module, PyObject *args)
{
    PyObject *given;
    Py_ssize_t rows;
    if (!PyArg_ParseTuple(args, "On:largest_first", &given, &rows) || !are_storages(module, given))
        return NULL;
    PyObject *all = PyList_GetSlice(given, 0, PY_SSIZE_T_MAX);
    PyObject *result = all && put_in_order(all, largest_first) == 0 ? Py_BuildValue("([][])") : NULL;
    for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(all); i++) {
        PyObject *left = i < rows ? NULL : without_row(storage_at(all, i));
        PyObject *item = left ? left : PyList_GET_ITEM(all, i);
        if (PyList_Append(PyTuple_GET_ITEM(result, left ? 1 : 0), item) < 0)
            Py_CLEAR(result);
    }
    Py_XDECREF(all);
    return result;
}
