/* Plain values of a snapshot's pickle as Python objects: settings, annotations, and what a later version adds. */
#include "types/snapshot_objects.h"

#include <string.h>

#define DEEPEST 20

PyObject *pml_snapshot_objects_text(const struct pml_names *names, uint32_t number)
{
    size_t length;
    const char *text = pml_names_text(names, number, &length);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "backslashreplace");
}

static PyObject *list_object(const struct pml_pickle *pickle, const pml_items *items, int depth)
{
    PyObject *list = PyList_New((Py_ssize_t)items->used);
    for (size_t i = 0; list && i < items->used; i++) {
        PyObject *item = pml_snapshot_objects_make(pickle, items->items[i], depth + 1);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static int set_item(const struct pml_pickle *pickle, PyObject *dict, const pml_value *pair, int depth)
{
    PyObject *key = pml_snapshot_objects_make(pickle, pair[0], depth + 1);
    PyObject *value = key ? pml_snapshot_objects_make(pickle, pair[1], depth + 1) : NULL;
    int done = value ? PyDict_SetItem(dict, key, value) : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    if (done < 0 && PyErr_ExceptionMatches(PyExc_TypeError)) { /* a key that cannot be one */
        PyErr_Clear();
        return 0;
    }
    return done;
}

static PyObject *dict_object(const struct pml_pickle *pickle, const pml_items *items, int depth)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i + 1 < items->used; i += 2)
        if (set_item(pickle, dict, items->items + i, depth) < 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *container_object(const struct pml_pickle *pickle, pml_value value, int depth)
{
    uint64_t payload = 0;
    const pml_items *items;
    if (depth > DEEPEST)
        Py_RETURN_NONE;
    if ((items = pml_values_items(&pickle->values, value, PML_IS_DICT)))
        return dict_object(pickle, items, depth);
    if ((items = pml_values_items(&pickle->values, value, PML_IS_LIST)))
        return list_object(pickle, items, depth);
    switch (pml_values_kind(&pickle->values, value, &payload)) {
    case PML_EMPTY_LIST: return PyList_New(0);
    case PML_EMPTY_DICT: return PyDict_New();
    default: Py_RETURN_NONE; /* rows have columns of their own */
    }
}

static PyObject *real_object(uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    return PyFloat_FromDouble(real);
}

PyObject *pml_snapshot_objects_make(const struct pml_pickle *pickle, pml_value value, int depth)
{
    uint64_t payload = pml_values_payload(value);
    int64_t integer = 0;
    switch (pml_values_tag(value)) {
    case PML_NONE: Py_RETURN_NONE;
    case PML_BOOL: return PyBool_FromLong(payload != 0);
    case PML_STRING: return pml_snapshot_objects_text(&pickle->rows.names, (uint32_t)payload);
    case PML_REAL: return real_object(pickle->values.wide.items[payload]);
    case PML_PAIR:
        return Py_BuildValue("(LL)", (long long)pickle->values.pairs.items[payload].first,
                             (long long)pickle->values.pairs.items[payload].second);
    case PML_OBJECT: return container_object(pickle, value, depth);
    default: pml_values_as_integer(&pickle->values, value, &integer); return PyLong_FromLongLong(integer);
    }
}
