/* Walks over live Python objects that look at nothing but their types: no attribute of a stranger is touched.
 *
 * Needs the GIL throughout. What a walk returns holds references: the caller drops it. Objects that `gc.freeze` has
 * set aside are in no list that the collector gives; they are reached over references (reach.c).
 */
#include "state.h"

#include "blocks.h"

#if defined(__GNUC__)
#define PML_PREFETCH(address) __builtin_prefetch(address, 1)
#else
#define PML_PREFETCH(address) ((void)(address))
#endif

#define KNOWN_TYPES 512
#define AHEAD 12

/* The types wanted, and the answers given so far, by the address of the type. */
struct wanted {
    PyObject *types; /* tuple (borrowed) */
    PyTypeObject *known[KNOWN_TYPES];
    bool answer[KNOWN_TYPES];
};

static bool is_wanted(struct wanted *wanted, PyTypeObject *type)
{
    size_t place = ((uintptr_t)type >> 4) % KNOWN_TYPES;
    if (wanted->known[place] == type)
        return wanted->answer[place];
    bool answer = false;
    for (Py_ssize_t i = 0; !answer && i < PyTuple_GET_SIZE(wanted->types); i++)
        answer = PyType_IsSubtype(type, (PyTypeObject *)PyTuple_GET_ITEM(wanted->types, i));
    wanted->known[place] = type;
    wanted->answer[place] = answer;
    return answer;
}

PyObject *pml_call(const char *module, const char *name)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *result = imported ? PyObject_CallMethod(imported, name, NULL) : NULL;
    Py_XDECREF(imported);
    return result;
}

/* Append what is wanted of `objects`, a list, and give the rest back on the way: on a heap of millions the time goes to
 * memory that is not in the cache, so each object is touched once. Last references stay for the list's own end. */
static int pick(struct wanted *wanted, PyObject *objects, PyObject *found)
{
    Py_ssize_t size = PyList_GET_SIZE(objects);
    for (Py_ssize_t i = 0; i < size; i++) {
        if (i + AHEAD < size)
            PML_PREFETCH(PyList_GET_ITEM(objects, i + AHEAD));
        PyObject *object = PyList_GET_ITEM(objects, i);
        if (is_wanted(wanted, Py_TYPE(object)) && PyList_Append(found, object) < 0)
            return -1;
        if (Py_REFCNT(object) > 1) {
            PyList_SET_ITEM(objects, i, NULL);
            Py_DECREF(object);
        }
    }
    return 0;
}

static int walk(struct wanted *wanted, PyObject *found)
{
    PyObject *objects = pml_call("gc", "get_objects");
    int failed = objects ? pml_reach_frozen(objects) : -1;
    if (!failed)
        failed = pick(wanted, objects, found);
    Py_XDECREF(objects);
    return failed;
}

static PyObject *tuple_of_types(PyObject *types)
{
    PyObject *tuple = PyTuple_Check(types) ? Py_NewRef(types) : PyTuple_Pack(1, types);
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *type = PyTuple_GET_ITEM(tuple, i);
        if (PyType_Check(type))
            continue;
        PyErr_Format(PyExc_TypeError, "walk_instances() needs types, not %R", type);
        Py_CLEAR(tuple);
    }
    return tuple;
}

/* walk_instances(type or tuple of types) -> list of the live objects whose type is one of them or derived from one. */
PyObject *pml_walk_instances(PyObject *module, PyObject *types)
{
    struct wanted wanted = {.types = tuple_of_types(types)};
    if (!wanted.types)
        return NULL;
    int collecting = PyGC_Disable(); /* a collection would run the program's own code in the middle */
    PyObject *found = PyList_New(0);
    if (found && walk(&wanted, found) < 0)
        Py_CLEAR(found);
    if (collecting)
        PyGC_Enable();
    Py_DECREF(wanted.types);
    return found;
}

/* cpu_block(pointer) -> bytes of the live CPU block that begins there, 0 if PyTorch's CPU allocator gave none. */
PyObject *pml_cpu_block(PyObject *module, PyObject *pointer)
{
    void *address = PyLong_AsVoidPtr(pointer);
    if (!address && PyErr_Occurred())
        return NULL;
    return PyLong_FromSize_t(pml_blocks_size(address));
}
