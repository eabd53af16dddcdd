/* The trace function: one hook a thread. Needs the GIL.
 *
 * Ownership: the thread's state dict owns the hook; while installed, the interpreter holds one more reference.
 */
#ifndef PML_HOOK_H
#define PML_HOOK_H

#include "cpython/state.h"
#include "frames/frame_stack.h"

struct PmlHook {
    PyObject_HEAD struct pml_state *state;
    PmlHook *next;
    unsigned long thread;
    PyThreadState *python_thread; /* may be gone, unless `pml_hook_is_here` */
    int depth;                    /* entries not left yet */
    int leaving;        /* entries left by another thread: this thread takes its hook down at its next event */
    bool traces;        /* its trace function was installed, and not taken down */
    bool adopted;       /* entered for a thread that started while a profiler was enabled */
    Py_tracefunc below; /* the tracer that was there, and is called after ours */
    PyObject *below_object;
    struct pml_frame_stack stack;
};

extern PyType_Spec pml_hook_spec;
/* The calling thread's, borrowed from its state; NULL with an exception set. */
PmlHook *pml_hook_of_thread(struct pml_state *state);
PyObject *pml_hook_enter(struct pml_state *state);
void pml_hook_leave(PmlHook *hook);
int pml_hook_adopt(struct pml_state *state);
/* Whether another tracer replaced this thread's hook. False for hooks of other threads, where that cannot be seen. */
bool pml_hook_displaced(const PmlHook *hook);
void pml_hook_after_fork(struct pml_state *state);

/* Whether the hook is that of the calling thread. */
static inline bool pml_hook_is_here(const PmlHook *hook)
{
    const PyThreadState *now = PyThreadState_Get();
    return now == hook->python_thread && now->thread_id == hook->thread;
}

/* Install the trace function above the tracer that is there. */
void pml_hook_install(PmlHook *hook);

#endif
