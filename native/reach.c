/* Objects that the collector does not list because `gc.freeze` has set them aside (servers do that after start-up, with
 * the model's weights among them): they are found over references, from everything that it does list, from the modules
 * and from the frames that run. Only `tp_traverse` is called, as the collector does itself. Needs the GIL.
 */
#include "state.h"

#include <stdlib.h>

/* A set of addresses: open addressing, linear probing, never removed from. */
struct set {
    uintptr_t *slot;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
};

struct reach {
    struct set seen;
    PyObject *objects; /* list (borrowed): those to visit, and what is found goes to its end */
    bool failed;
};

static uintptr_t *probe(struct set *set, uintptr_t key)
{
    size_t mask = set->capacity - 1;
    size_t i = (size_t)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;
    while (set->slot[i] && set->slot[i] != key)
        i = (i + 1) & mask;
    return &set->slot[i];
}

static bool grow(struct set *set)
{
    struct set wider = {.capacity = set->capacity ? set->capacity * 2 : 1024, .used = set->used};
    wider.slot = calloc(wider.capacity, sizeof *wider.slot);
    if (!wider.slot)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slot[i])
            *probe(&wider, set->slot[i]) = set->slot[i];
    free(set->slot);
    *set = wider;
    return true;
}

/* 1 if the object is new in the set, 0 if it was there, -1 without memory. */
static int set_add(struct set *set, const PyObject *object)
{
    if (set->used * 2 >= set->capacity && !grow(set))
        return -1;
    uintptr_t *slot = probe(set, (uintptr_t)object);
    if (*slot)
        return 0;
    *slot = (uintptr_t)object;
    set->used++;
    return 1;
}

static int visit(PyObject *object, void *arg)
{
    struct reach *reach = arg;
    if (!object || !PyObject_IS_GC(object))
        return 0;
    int added = set_add(&reach->seen, object);
    reach->failed = added < 0 || (added && PyList_Append(reach->objects, object) < 0);
    return reach->failed;
}

static void visit_all(PyObject *container, struct reach *reach)
{
    if (container)
        Py_TYPE(container)->tp_traverse(container, visit, reach);
}

/* The local variables of a frame that runs, and of those that called it: such a frame does not show them to the collector. */
static void add_frames(PyObject *top, struct reach *reach)
{
    PyObject *frame = Py_NewRef(top);
    while (frame && !reach->failed) {
        PyObject *locals = PyObject_GetAttrString(frame, "f_locals");
        PyObject *values = locals ? PyMapping_Values(locals) : NULL;
        visit_all(values, reach);
        Py_XDECREF(values);
        Py_XDECREF(locals);
        PyErr_Clear();
        PyObject *caller = (PyObject *)PyFrame_GetBack((PyFrameObject *)frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
}

static int add_roots(struct reach *reach)
{
    visit(PyImport_GetModuleDict(), reach);
    PyObject *frames = reach->failed ? NULL : pml_call("sys", "_current_frames");
    PyObject *thread, *frame;
    for (Py_ssize_t i = 0; frames && PyDict_Next(frames, &i, &thread, &frame);)
        add_frames(frame, reach);
    Py_XDECREF(frames);
    return frames && !reach->failed ? 0 : -1;
}

static int close_over(struct reach *reach)
{
    for (Py_ssize_t i = 0; !reach->failed && i < PyList_GET_SIZE(reach->objects); i++)
        reach->failed = set_add(&reach->seen, PyList_GET_ITEM(reach->objects, i)) < 0;
    if (reach->failed || add_roots(reach) < 0)
        return -1;
    for (Py_ssize_t i = 0; !reach->failed && i < PyList_GET_SIZE(reach->objects); i++) {
        PyObject *object = PyList_GET_ITEM(reach->objects, i);
        if (Py_TYPE(object)->tp_traverse)
            Py_TYPE(object)->tp_traverse(object, visit, reach);
    }
    return reach->failed ? -1 : 0;
}

static int reach_all(PyObject *objects)
{
    struct reach reach = {.objects = objects};
    int failed = objects ? close_over(&reach) : -1;
    free(reach.seen.slot);
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    return failed;
}

/* `*objects` gets a list of all objects, with those that are frozen and can be reached; NULL where nothing is frozen. */
int pml_reach_frozen(PyObject **objects)
{
    PyObject *frozen = pml_call("gc", "get_freeze_count");
    long count = frozen ? PyLong_AsLong(frozen) : -1;
    Py_XDECREF(frozen);
    if (count <= 0)
        return count < 0 ? -1 : 0;
    *objects = pml_call("gc", "get_objects");
    if (reach_all(*objects) == 0)
        return 0;
    Py_CLEAR(*objects);
    return -1;
}
