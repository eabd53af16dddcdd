/* Every difference between Python versions that the extension meets, and only here. */
#ifndef PML_COMPAT_H
#define PML_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h> /* PyFrame_GetBack, PyFrame_Type: not in Python.h on 3.10 */

/* A module slot: the extension's state is process-wide, one interpreter at a time. Before 3.12, the end of the slots.
 */
#if PY_VERSION_HEX >= 0x030C0000
#define PML_ONE_INTERPRETER {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}
#else
#define PML_ONE_INTERPRETER {0, NULL}
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

/* Whether each round of a comprehension is a line event of the frame around, as those of a loop on one line are. */
#define PML_COMPAT_INLINES_COMPREHENSIONS (PY_VERSION_HEX >= 0x030C0000)

/* Where a frame stands in its bytecode: the byte offset of its instruction. */
static inline int pml_compat_offset(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
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

/* The raised exception goes where nobody can handle it; an interrupt is raised again where the program runs. */
static inline void pml_compat_exception_drop(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt();
    PyErr_Clear();
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
