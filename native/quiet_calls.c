/* Pauses of tracing around calls that come from C.
 *
 * `module(x)` and `self.layer`, where `__call__` and `__getattr__` are Python functions, are called by C code through the
 * function's `vectorcall` pointer. Once such a function was seen as a callee of a profiled line, its pointer leads here: a
 * pause then costs no event, no frame object and no bell, and ends with the call whatever happens in it. On threads that
 * do not trace, a comparison is added to a call. The pointer stays: functions are compared by it nowhere.
 */
#include "cpython/state.h"

#if PML_QUIET

PML_HOT static PyObject *call(PyObject *function, PyObject *const *args, size_t count, PyObject *names)
{
    PmlHook *hook = pml_hook_of_tracing(PyThreadState_Get());
    uint64_t number = hook && !pml_codes_find(PyFunction_GET_CODE(function)) ? pml_quiet_call(hook) : 0;
    if (!number)
        return _PyFunction_Vectorcall(function, args, count, names);
    Py_INCREF(hook);
    PyObject *result = _PyFunction_Vectorcall(function, args, count, names);
    if (pml_hook_is_here(hook))
        pml_quiet_call_ended(hook, number);
    Py_DECREF(hook);
    return result;
}

/* What a dictionary or a class has under a name: borrowed, or NULL. */
static PyObject *member(PyObject *space, PyObject *name)
{
    PyObject *dict = PyType_Check(space) ? ((PyTypeObject *)space)->tp_dict : space;
    return dict && PyDict_CheckExact(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
}

/* The function that this code's qualified name leads to in its module; borrowed, or NULL. */
static PyObject *function_of(PyObject *globals, PyCodeObject *code)
{
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *names = dot ? PyUnicode_Split(code->co_qualname, dot, -1) : NULL;
    PyObject *found = names ? globals : NULL;
    for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(names); i++)
        found = member(found, PyList_GET_ITEM(names, i));
    Py_XDECREF(names);
    Py_XDECREF(dot);
    return found && PyFunction_Check(found) && PyFunction_GET_CODE(found) == (PyObject *)code ? found : NULL;
}

void pml_quiet_learn(PyFrameObject *frame, PyCodeObject *code)
{
    static const void *tried[256]; /* compared only */
    const void **slot = &tried[((uintptr_t)code >> 5 ^ (uintptr_t)code >> 13) % 256];
    if (*slot == code)
        return;
    *slot = code;
    struct pml_compat_exception pending = pml_compat_exception_take();
    PyObject *globals = PyFrame_GetGlobals(frame);
    PyFunctionObject *function = (PyFunctionObject *)function_of(globals, code);
    if (function && function->vectorcall == _PyFunction_Vectorcall)
        function->vectorcall = call;
    Py_DECREF(globals);
    PyErr_Clear();
    pml_compat_exception_put(pending);
}

#endif
