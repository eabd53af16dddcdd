/* The objects that a walk has not come to, and which of them are held from outside: by what calls have on their stacks,
 * and by C and C++ objects that the collector does not know. The others hold each other: garbage in cycles.
 *
 * As the collector finds out: a reference count that is larger than the number of references from the other objects. It
 * must be off, and no object may be freed meanwhile. Needs the GIL.
 */
#include "live/unreached.h"

#include "live/gc_lists.h"

struct unreached {
    struct pml_pointer_map number; /* object to its index, plus 1 */
    Py_ssize_t *references;        /* of each, from outside */
};

static bool every_type(PyTypeObject *type, void *unused)
{
    return true;
}

static bool was_reached(const struct pml_reach *reach, PyObject *object)
{
    const uint32_t *known = pml_pointer_map_find(&reach->known, object);
    return known && *known & PML_REACH_SEEN;
}

/* Leaves only those in the list that were not reached. */
static int keep_unreached(const struct pml_reach *reach, PyObject *list)
{
    Py_ssize_t kept = 0, count = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        if (was_reached(reach, object))
            continue;
        PyList_SET_ITEM(list, i, PyList_GET_ITEM(list, kept));
        PyList_SET_ITEM(list, kept++, object);
    }
    return PyList_SetSlice(list, kept, count, NULL);
}

static bool number_all(struct unreached *unreached, PyObject *list)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    unreached->references = PyMem_RawCalloc((size_t)count + 1, sizeof *unreached->references);
    for (Py_ssize_t i = 0; unreached->references && i < count; i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        uint32_t *number = pml_pointer_map_enter(&unreached->number, object);
        if (!number)
            return false;
        *number = (uint32_t)i + 1;
        unreached->references[i] = Py_REFCNT(object) - 1; /* without the list's */
    }
    return unreached->references != NULL;
}

static int take_off(PyObject *object, void *arg)
{
    struct unreached *unreached = arg;
    const uint32_t *number = pml_pointer_map_find(&unreached->number, object);
    if (number)
        unreached->references[*number - 1]--;
    return 0;
}

static void take_off_all(struct unreached *unreached, PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        if (pml_reach_holds_others(object))
            Py_TYPE(object)->tp_traverse(object, take_off, unreached);
    }
}

static bool is_target(const struct pml_reach *reach, PyObject *object)
{
    const uint32_t *known = pml_pointer_map_find(&reach->known, object);
    return known && *known & PML_REACH_TARGET;
}

/* Which list: held from outside, an instance of a class in garbage, or what such ones are made of. */
static int place_of(const struct unreached *unreached, Py_ssize_t number, PyObject *object)
{
    if (unreached->references[number] > 0)
        return 0;
    return Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE ? 1 : 2;
}

static PyObject *sort_out(const struct pml_reach *reach, const struct unreached *unreached, PyObject *list)
{
    PyObject *lists = Py_BuildValue("([][][])");
    for (Py_ssize_t i = 0; lists && i < PyList_GET_SIZE(list); i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        if (is_target(reach, object))
            continue;
        if (PyList_Append(PyTuple_GET_ITEM(lists, place_of(unreached, i, object)), object) < 0)
            Py_CLEAR(lists);
    }
    return lists;
}

static PyObject *find_among(const struct pml_reach *reach, PyObject *list, PyObject *ours)
{
    struct unreached unreached = {.references = NULL};
    PyObject *lists = NULL;
    if (keep_unreached(reach, list) < 0)
        return NULL;
    if (number_all(&unreached, list)) {
        take_off_all(&unreached, list);
        take_off_all(&unreached, ours);
        lists = sort_out(reach, &unreached, list);
    } else {
        PyErr_NoMemory();
    }
    pml_pointer_map_free(&unreached.number);
    PyMem_RawFree(unreached.references);
    return lists;
}

PyObject *pml_unreached_find(const struct pml_reach *reach, PyObject *ours)
{
    PyObject *all = pml_gc_lists_select(every_type, NULL);
    PyObject *lists = all ? find_among(reach, all, ours) : NULL;
    Py_XDECREF(all);
    return lists;
}
