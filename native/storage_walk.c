/* Walks over live Python objects that look at nothing but their types: no attribute of a stranger is touched. */
#include "state.h"

static PyObject *all_objects(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *objects = gc ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    Py_XDECREF(gc);
    return objects;
}

/* walk_instances(type) -> list of the live objects whose type is `type` or derived from it. */
PyObject *pml_walk_instances(PyObject *module, PyObject *type)
{
    if (!PyType_Check(type))
        return PyErr_Format(PyExc_TypeError, "walk_instances() needs a type, not %R", type);
    PyObject *objects = all_objects();
    if (!objects)
        return NULL;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(objects); i++) {
        PyObject *object = PyList_GET_ITEM(objects, i);
        if (PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)type) && PyList_Append(found, object) < 0)
            Py_CLEAR(found);
    }
    Py_DECREF(objects);
    return found;
}
