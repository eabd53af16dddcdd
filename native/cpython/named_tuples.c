/* Named tuples (see named_tuples.h). */
#include "cpython/named_tuples.h"

#include <stdarg.h>

int pml_named_tuples_add(PyObject *module, struct pml_named_tuple *kind)
{
    PyStructSequence_Desc *description = &kind->description;
    if (!kind->type) {
        for (description->n_in_sequence = 0; description->fields[description->n_in_sequence].name;)
            description->n_in_sequence++;
        kind->type = PyStructSequence_NewType(description);
    }
    return kind->type ? PyModule_AddType(module, kind->type) : -1;
}

static PyObject *from_tuple(const struct pml_named_tuple *kind, PyObject *values)
{
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    if (count != kind->description.n_in_sequence) {
        PyErr_BadInternalCall();
        return NULL;
    }
    PyObject *named = PyStructSequence_New(kind->type);
    for (Py_ssize_t i = 0; named && i < count; i++)
        PyStructSequence_SetItem(named, i, Py_NewRef(PyTuple_GET_ITEM(values, i)));
    if (named && PyObject_IS_GC(named) && !PyObject_GC_IsTracked(named))
        PyObject_GC_Track(named); /* Python leaves it out, as if there were only numbers in it: cycles would stay */
    return named;
}

PyObject *pml_named_tuples_build(const struct pml_named_tuple *kind, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *values = Py_VaBuildValue(format, list);
    va_end(list);
    PyObject *named = values ? from_tuple(kind, values) : NULL;
    Py_XDECREF(values);
    return named;
}
