/* Walks over live Python objects that look at nothing but their types: no attribute of a stranger is touched.
 *
 * Needs the GIL throughout. What a walk returns holds references: the caller drops it.
 */
#include "state.h"

#include "blocks.h"

#define KNOWN_TYPES 512

/* The types wanted, and the answers given so far, by the address of the type. */
struct wanted {
    PyObject *types; /* tuple: types, and names of attributes */
    PyTypeObject *known[KNOWN_TYPES];
    bool answer[KNOWN_TYPES];
};

/* Whether a type in C defines this attribute itself. */
static bool defines(PyTypeObject *type, PyObject *name)
{
    PyObject *attribute = type->tp_dict ? PyDict_GetItemWithError(type->tp_dict, name) : NULL;
    return attribute && Py_IS_TYPE(attribute, &PyGetSetDescr_Type);
}

static bool fits(PyTypeObject *type, PyObject *wanted)
{
    return PyType_Check(wanted) ? PyType_IsSubtype(type, (PyTypeObject *)wanted) : defines(type, wanted);
}

static bool is_wanted(PyTypeObject *type, void *arg)
{
    struct wanted *wanted = arg;
    size_t place = ((uintptr_t)type >> 4) % KNOWN_TYPES;
    if (wanted->known[place] == type)
        return wanted->answer[place];
    bool answer = false;
    for (Py_ssize_t i = 0; !answer && i < PyTuple_GET_SIZE(wanted->types); i++)
        answer = fits(type, PyTuple_GET_ITEM(wanted->types, i));
    wanted->known[place] = type;
    wanted->answer[place] = answer;
    return answer;
}

static PyObject *tuple_of_types(PyObject *types)
{
    PyObject *tuple = PyTuple_Check(types) ? Py_NewRef(types) : PyTuple_Pack(1, types);
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *type = PyTuple_GET_ITEM(tuple, i);
        if (PyType_Check(type) || PyUnicode_CheckExact(type))
            continue;
        PyErr_Format(PyExc_TypeError, "walk_instances() needs types, or names of attributes, not %R", type);
        Py_CLEAR(tuple);
    }
    return tuple;
}

/* walk_instances(type or tuple of types) -> list of the live objects whose type is one of them or derived from one. A str
 * stands for the types in C that define an attribute of this name. */
PyObject *pml_walk_instances(PyObject *module, PyObject *types)
{
    struct wanted wanted = {.types = tuple_of_types(types)};
    if (!wanted.types)
        return NULL;
    int collecting = PyGC_Disable(); /* a collection would run the program's own code in the middle */
    PyObject *found = PyList_New(0);
    if (found && pml_gc_select(is_wanted, &wanted, found) < 0)
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

/* What a function, or an attribute of a C type, gives for one object. */
static PyObject *ask(PyObject *question, PyObject *object)
{
    if (!Py_IS_TYPE(question, &PyGetSetDescr_Type))
        return PyObject_CallOneArg(question, object);
    return Py_TYPE(question)->tp_descr_get(question, object, (PyObject *)Py_TYPE(object));
}

/* The answer, or None where there is an `Exception`; NULL for what must not be swallowed. */
static PyObject *tried(PyObject *question, PyObject *object)
{
    PyObject *result = ask(question, object);
    if (result || !PyErr_ExceptionMatches(PyExc_Exception))
        return result;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

/* try_each(question, list) -> list of what a function, or a getset descriptor of a type in C, gives for each object, None
 * where it raised. Descriptors are read without the tuple that calling their `__get__` makes. */
PyObject *pml_try_each(PyObject *module, PyObject *args)
{
    PyObject *question, *objects;
    if (!PyArg_ParseTuple(args, "OO!:try_each", &question, &PyList_Type, &objects))
        return NULL;
    PyObject *results = PyList_New(0);
    for (Py_ssize_t i = 0; results && i < PyList_GET_SIZE(objects); i++) {
        PyObject *object = Py_NewRef(PyList_GET_ITEM(objects, i));
        PyObject *result = tried(question, object);
        if (!result || PyList_Append(results, result) < 0)
            Py_CLEAR(results);
        Py_XDECREF(result);
        Py_DECREF(object);
    }
    return results;
}
