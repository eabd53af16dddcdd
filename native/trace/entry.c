/* Entering and leaving the hook (see entry.h). */
#include "trace/entry.h"

#include "lines/recorders.h"
#include "trace/hook.h"

PyObject *pml_entry_enter(PyObject *module, PyObject *unused)
{
    PyObject *hook = pml_hook_enter(pml_state_of(module));
    if (hook)
        return hook;
    PyErr_Clear(); /* the program continues without profiling */
    pml_recorders_fail();
    Py_RETURN_NONE;
}

PyObject *pml_entry_leave(PyObject *module, PyObject *hook)
{
    if (Py_IS_TYPE(hook, pml_state_of(module)->hook_type))
        pml_hook_leave((PmlHook *)hook);
    Py_RETURN_NONE;
}

/* For wrappers: no interrupt can come between entering and remembering that. */
PyObject *pml_entry_push_hook(PyObject *module, PyObject *hooks)
{
    if (!PyList_Check(hooks))
        return PyErr_Format(PyExc_TypeError, "push_hook: a list, not %R", hooks);
    PyObject *hook = pml_entry_enter(module, NULL);
    if (PyList_Append(hooks, hook) < 0) {
        PyErr_Clear();
        Py_XDECREF(pml_entry_leave(module, hook));
        pml_recorders_fail();
    }
    Py_DECREF(hook);
    Py_RETURN_NONE;
}

PyObject *pml_entry_pop_hook(PyObject *module, PyObject *hooks)
{
    Py_ssize_t count = PyList_Check(hooks) ? PyList_GET_SIZE(hooks) : 0;
    if (count == 0)
        Py_RETURN_NONE;
    PyObject *hook = Py_NewRef(PyList_GET_ITEM(hooks, count - 1));
    PyObject *done = PyList_SetSlice(hooks, count - 1, count, NULL) < 0 ? NULL : pml_entry_leave(module, hook);
    Py_DECREF(hook);
    return done;
}

PyObject *pml_entry_adopt_thread(PyObject *module, PyObject *unused)
{
    if (pml_hook_adopt(pml_state_of(module)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *pml_entry_follow_new_threads(PyObject *module, PyObject *change)
{
    long by = PyLong_AsLong(change);
    if (by == -1 && PyErr_Occurred())
        return NULL;
    struct pml_state *state = pml_state_of(module);
    state->enabled = state->enabled + by > 0 ? state->enabled + (int)by : 0;
    Py_RETURN_NONE;
}
