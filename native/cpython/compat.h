/* Every difference between Python versions that the extension meets, and only here. */
#ifndef PML_COMPAT_H
#define PML_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h> /* PyFrame_GetBack, PyFrame_Type: not in Python.h on 3.10 */

/* A module slot: the extension's state is process-wide, one interpreter at a time. */
#if PY_VERSION_HEX >= 0x030C0000
#define PML_ONE_INTERPRETER {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#else
#define PML_ONE_INTERPRETER
#endif

/* A thread's trace function and its object (borrowed): fields of the public thread state structure. */
static inline Py_tracefunc pml_compat_trace_function(const PyThreadState *thread)
{
    return thread->c_tracefunc;
}

static inline PyObject *pml_compat_trace_object(const PyThreadState *thread)
{
    return thread->c_traceobj;
}

/* Whether tracing may pause in the callees of a profiled frame (quiet.c): where that is needed and known to work. From
 * 3.12 on switching the trace function is slow. */
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define PML_QUIET 1
#else
#define PML_QUIET 0
#endif

/* Take this thread's trace function out for a pause, or put it back. On 3.11 this does what PyEval_SetTrace does, by the fields of
 * the public thread state structure, without its audit event: tracing is not changed. */
static inline void pml_trace_switch(PyThreadState *thread, Py_tracefunc function, PyObject *object)
{
#if PML_QUIET
    PyObject *old = thread->c_traceobj;
    thread->c_tracefunc = function;
    thread->c_traceobj = Py_XNewRef(object);
    thread->cframe->use_tracing = function || thread->c_profilefunc ? 255 : 0;
    Py_XDECREF(old);
#else
    PyEval_SetTrace(function, object);
#endif
}

/* The interpreter's loop that runs on this thread, and the one around it: a function that is called without C in between
 * runs in its caller's loop. NULL where that is not so, or need not be known. */
static inline const void *pml_loop(const PyThreadState *thread)
{
#if PML_QUIET
    return thread->cframe;
#else
    return NULL;
#endif
}

static inline const void *pml_loop_around(const PyThreadState *thread)
{
#if PML_QUIET
    return thread->cframe->previous;
#else
    return NULL;
#endif
}

/* Set `frame.f_trace` by its descriptor's own function, looked up once. Returns 0, or -1 with an exception. */
static inline int pml_frame_set_trace(PyFrameObject *frame, PyObject *value)
{
    static const PyGetSetDef *f_trace;
    if (!f_trace)
        for (f_trace = PyFrame_Type.tp_getset; strcmp(f_trace->name, "f_trace") != 0; f_trace++) {
        }
    return f_trace->set((PyObject *)frame, value, f_trace->closure);
}

/* Whether the interpreter itself must visit the objects that its collector keeps (gc_lists.c does it before 3.14). */
#if PY_VERSION_HEX >= 0x030E0000 || defined(Py_GIL_DISABLED)
#define PML_GC_VISITS 1
#else
#define PML_GC_VISITS 0
#endif

/* A pending exception, set aside and put back. */
struct pml_compat_exception {
    PyObject *type, *value, *traceback;
};

static inline struct pml_compat_exception pml_compat_exception_take(void)
{
    struct pml_compat_exception e = {NULL, NULL, NULL};
#if PY_VERSION_HEX >= 0x030C0000
    e.value = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&e.type, &e.value, &e.traceback);
#endif
    return e;
}

static inline void pml_compat_exception_put(struct pml_compat_exception e)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(e.value);
#else
    PyErr_Restore(e.type, e.value, e.traceback);
#endif
}

#endif
