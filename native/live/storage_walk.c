/* Walks over live Python objects that look at nothing but their types: no attribute of a stranger is touched.
 *
 * Needs the GIL throughout. What a walk returns holds references: the caller drops it.
 */
#include "live/storage_walk.h"

#include <stdbool.h>

#include "live/gc_lists.h"

#define KNOWN_TYPES 512

/* The types wanted, and the answers given so far, by the address of the type: which of them it fits first, or none. */
struct wanted {
    PyObject *types; /* tuple: types, and names of attributes */
    PyTypeObject *known[KNOWN_TYPES];
    Py_ssize_t answer[KNOWN_TYPES];
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

/* The first of the types that this one fits; -1 if there is none. */
static Py_ssize_t first_fit(struct wanted *wanted, PyTypeObject *type)
{
    size_t slot = ((uintptr_t)type >> 4) % KNOWN_TYPES;
    if (wanted->known[slot] == type)
        return wanted->answer[slot];
    Py_ssize_t answer = 0, count = PyTuple_GET_SIZE(wanted->types);
    while (answer < count && !fits(type, PyTuple_GET_ITEM(wanted->types, answer)))
        answer++;
    wanted->known[slot] = type;
    return wanted->answer[slot] = answer < count ? answer : -1;
}

static bool is_wanted(PyTypeObject *type, void *arg)
{
    return first_fit(arg, type) >= 0;
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

static PyObject *select_wanted(struct wanted *wanted)
{
    int collecting = PyGC_Disable(); /* a collection would run the program's own code in the middle */
    PyObject *found = pml_gc_lists_select(is_wanted, wanted);
    if (collecting)
        PyGC_Enable();
    return found;
}

/* walk_instances(type or tuple of types) -> list of the live objects whose type is one of them or derived from one. A
 * str means the types in C that define an attribute of this name. */
PyObject *pml_storage_walk_instances(PyObject *module, PyObject *types)
{
    struct wanted wanted = {.types = tuple_of_types(types)};
    PyObject *found = wanted.types ? select_wanted(&wanted) : NULL;
    Py_XDECREF(wanted.types);
    return found;
}

static PyObject *tuple_of_lists(Py_ssize_t count)
{
    PyObject *lists = PyTuple_New(count);
    for (Py_ssize_t i = 0; lists && i < count; i++) {
        PyObject *list = PyList_New(0);
        if (list)
            PyTuple_SET_ITEM(lists, i, list);
        else
            Py_CLEAR(lists);
    }
    return lists;
}

static PyObject *sort_out(struct wanted *wanted, PyObject *found)
{
    PyObject *lists = tuple_of_lists(PyTuple_GET_SIZE(wanted->types));
    for (Py_ssize_t i = 0; lists && i < PyList_GET_SIZE(found); i++) {
        PyObject *object = PyList_GET_ITEM(found, i);
        if (PyList_Append(PyTuple_GET_ITEM(lists, first_fit(wanted, Py_TYPE(object))), object) < 0)
            Py_CLEAR(lists);
    }
    return lists;
}

/* walk_kinds(type, ...) -> a list for each type, as `walk_instances` gives; each object in that of the first that fits.
 */
PyObject *pml_storage_walk_kinds(PyObject *module, PyObject *types)
{
    struct wanted wanted = {.types = tuple_of_types(types)};
    PyObject *found = wanted.types ? select_wanted(&wanted) : NULL;
    PyObject *lists = found ? sort_out(&wanted, found) : NULL;
    Py_XDECREF(found);
    Py_XDECREF(wanted.types);
    return lists;
}

/* What a function, or an attribute of a C type, gives for one object. */
static PyObject *ask(PyObject *question, PyObject *object)
{
    if (!Py_IS_TYPE(question, &PyGetSetDescr_Type))
        return PyObject_CallOneArg(question, object);
    const PyGetSetDescrObject *attribute = (PyGetSetDescrObject *)question;
    const PyGetSetDef *how = attribute->d_getset;
    if (how->get && PyObject_TypeCheck(object, attribute->d_common.d_type))
        return how->get(object, how->closure);
    return Py_TYPE(question)->tp_descr_get(question, object, (PyObject *)Py_TYPE(object));
}

PyObject *pml_storage_walk_try(PyObject *question, PyObject *object)
{
    PyObject *result = ask(question, object);
    if (result || !PyErr_ExceptionMatches(PyExc_Exception))
        return result;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

/* try_each(question, list) -> list of what a function, or a getset descriptor of a type in C, gives for each object,
 * None where it raised. Descriptors are read without the tuple that calling their `__get__` makes. */
PyObject *pml_storage_walk_try_each(PyObject *module, PyObject *args)
{
    PyObject *question, *objects;
    if (!PyArg_ParseTuple(args, "OO!:try_each", &question, &PyList_Type, &objects))
        return NULL;
    PyObject *results = PyList_New(0);
    for (Py_ssize_t i = 0; results && i < PyList_GET_SIZE(objects); i++) {
        PyObject *object = Py_NewRef(PyList_GET_ITEM(objects, i));
        PyObject *result = pml_storage_walk_try(question, object);
        if (!result || PyList_Append(results, result) < 0)
            Py_CLEAR(results);
        Py_XDECREF(result);
        Py_DECREF(object);
    }
    return results;
}

/* Add (object, answer) if the answer is neither None nor False. */
static int add_answer(PyObject *question, PyObject *object, PyObject *list)
{
    PyObject *answer = pml_storage_walk_try(question, object);
    if (!answer || answer == Py_None || answer == Py_False) {
        Py_XDECREF(answer);
        return answer ? 0 : -1;
    }
    PyObject *pair = PyTuple_Pack(2, object, answer);
    int failed = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    Py_DECREF(answer);
    return failed;
}

/* find_answers(list, question, ...) -> for each question a list of (object, answer), without None and False. As
 * `try_each`, but all questions are put to an object before the next. */
PyObject *pml_storage_walk_find_answers(PyObject *module, PyObject *args)
{
    Py_ssize_t questions = PyTuple_GET_SIZE(args) - 1;
    PyObject *objects = questions < 0 ? NULL : PyTuple_GET_ITEM(args, 0);
    if (!objects || !PyList_Check(objects))
        return PyErr_Format(PyExc_TypeError, "find_answers() needs a list, and questions");
    PyObject *results = tuple_of_lists(questions);
    for (Py_ssize_t i = 0; results && i < PyList_GET_SIZE(objects); i++) {
        PyObject *object = Py_NewRef(PyList_GET_ITEM(objects, i));
        for (Py_ssize_t q = 0; results && q < questions; q++)
            if (add_answer(PyTuple_GET_ITEM(args, q + 1), object, PyTuple_GET_ITEM(results, q)) < 0)
                Py_CLEAR(results);
        Py_DECREF(object);
    }
    return results;
}

/* sum_answers(question, list) -> the sum of what is an integer among the answers. */
PyObject *pml_storage_walk_sum_answers(PyObject *module, PyObject *args)
{
    PyObject *question, *objects;
    if (!PyArg_ParseTuple(args, "OO!:sum_answers", &question, &PyList_Type, &objects))
        return NULL;
    long long sum = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
        PyObject *object = Py_NewRef(PyList_GET_ITEM(objects, i));
        PyObject *answer = pml_storage_walk_try(question, object);
        Py_DECREF(object);
        if (!answer)
            return NULL;
        sum += PyLong_CheckExact(answer) ? (long long)PyLong_AsUnsignedLongLongMask(answer) : 0;
        Py_DECREF(answer);
    }
    return PyLong_FromLongLong(sum);
}
