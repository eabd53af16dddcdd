/* Tracing off while a callee of a profiled frame runs that nothing is to be seen of.
 *
 * Python 3.11 runs everything several times slower while a trace function is set, also the functions that nobody
 * profiles. Where all profiled functions are decorated, none can begin unseen: its wrapper calls `enter`. So when a
 * profiled frame calls another function, the trace function is taken out, and a *bell* is hung into the callee's frame
 * (its `f_trace`): it is freed with the frame, right when the call ends, and puts the trace function back. What is called
 * from C often is not even seen: the pause is made around the call (quiet_calls.c).
 *
 * A callee that ends by an exception keeps its frame, in the traceback. Then the profiled frame must end with it, and its wrapper
 * must leave, or lines would be missed: calls inside `try` or `with` are left loud, and so are those of frames that another
 * decorator has called, which may handle the exception and call once more. A callee whose frame is kept for other reasons (a
 * stored traceback) rings too late or never. That is noticed when it rings (`in_time`), or else when the profiled function's
 * wrapper leaves. It is told in the report, and the function stays loud from then on.
 *
 * Needs the GIL. Bells may be freed anywhere; they act on their own thread only.
 */
#include "cpython/state.h"

typedef struct {
    PyObject_HEAD
    PmlHook *hook;        /* owned */
    PyFrameObject *frame; /* the callee's, in which it hangs; not owned: it dies with that frame */
    int size;             /* of the callee's code, in bytes */
    uint64_t number;
} Bell;

/* Between the collector's start and its end. */
PML_READ_MOSTLY static bool collecting;

PyObject *pml_quiet_collector(PyObject *module, PyObject *args)
{
    const char *phase;
    PyObject *info;
    if (!PyArg_ParseTuple(args, "sO:collector", &phase, &info))
        return NULL;
    collecting = phase[0] == 's' && phase[2] == 'a'; /* start, not stop */
    Py_RETURN_NONE;
}

/* Pop frames, and let go of those that were held during a pause. */
void pml_quiet_cut(PmlHook *hook, int depth)
{
    while (hook->stack.depth > depth) {
        struct pml_frame *top = pml_frame_stack_top(&hook->stack);
        PyObject *owner_bytes = top->owner_bytes;
        top->owner_bytes = NULL;
        pml_frame_stack_pop(&hook->stack);
        Py_XDECREF(owner_bytes);
    }
}

bool pml_quiet_now(const PmlHook *hook)
{
    const struct pml_frame *top = pml_frame_stack_top(&hook->stack);
    return top && top->quiet && top->quiet == hook->depth && !pml_compat_trace_function(hook->python_thread);
}

#if PML_QUIET

#define SUSPENDABLE (CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)

static int read_varint(const unsigned char **at, const unsigned char *end)
{
    int value = 0;
    while (*at < end) {
        unsigned char byte = *(*at)++;
        value = value << 6 | (byte & 63);
        if (!(byte & 64))
            break;
    }
    return value;
}

/* True if an exception at this instruction would be handled in the frame itself. The table's entries are start, length,
 * target and depth, in instruction units (CPython, Objects/exception_handling_notes.txt). */
static bool covered(PyCodeObject *code, int instruction)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(code->co_exceptiontable);
    const unsigned char *end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
    while (at < end) {
        int start = read_varint(&at, end);
        int length = read_varint(&at, end);
        read_varint(&at, end);
        read_varint(&at, end);
        if (instruction >= start && instruction < start + length)
            return true;
    }
    return false;
}

/* Whether an exception of the call that the profiled frame makes would be handled there. */
static bool catches(const struct pml_frame *top)
{
    PyCodeObject *code = (PyCodeObject *)(uintptr_t)top->code->key;
    return covered(code, PyFrame_GetLasti((PyFrameObject *)(uintptr_t)top->id) / (int)sizeof(_Py_CODEUNIT));
}

/* The last one that was freed is used again. */
static Bell *new_bell(struct pml_state *state)
{
    Bell *spare = state->spare_bell;
    if (!spare)
        return PyObject_New(Bell, state->bell_type);
    state->spare_bell = NULL;
    return (Bell *)PyObject_Init((PyObject *)spare, state->bell_type);
}

static bool hang_bell(PmlHook *hook, PyFrameObject *frame, PyCodeObject *code, uint64_t number)
{
    Bell *bell = new_bell(hook->state);
    if (!bell)
        return false;
    bell->hook = (PmlHook *)Py_NewRef((PyObject *)hook);
    bell->frame = frame;
    bell->size = (int)(Py_SIZE(code) * (Py_ssize_t)sizeof(_Py_CODEUNIT));
    bell->number = number;
    int failed = pml_frame_set_trace(frame, (PyObject *)bell);
    Py_DECREF(bell);
    return !failed;
}

PML_WRITTEN_OFTEN static uint64_t pauses;

/* The innermost profiled frame, if it is the one that calls, and tracing may pause for it. */
static struct pml_frame *pausing_frame(const PmlHook *hook, const PyFrameObject *caller)
{
    struct pml_frame *top = pml_frame_stack_top(&hook->stack);
    bool possible = top && top->id == caller && !top->quiet && !hook->below && !hook->state->enabled && !collecting;
    bool settled = !hook->leaving && !hook->adopted; /* else the hook's depth is about to change */
    return possible && settled ? top : NULL;
}

static void pause_tracing(PmlHook *hook, struct pml_frame *top, uint64_t number)
{
    top->quiet = hook->depth;
    top->bell = number;
    pml_trace_switch(hook->python_thread, NULL, NULL);
}

PML_HOT uint64_t pml_quiet_call(PmlHook *hook)
{
    struct pml_frame *top = pausing_frame(hook, PyEval_GetFrame());
    if (!top)
        return 0;
    pause_tracing(hook, top, ++pauses);
    return pauses;
}

bool pml_quiet_called_by_wrapper(PmlHook *hook, const PyCodeObject *code)
{
    const void *calling = hook->calling;
    hook->calling = NULL;
    if (!calling)
        return false;
    bool resumed = code->co_flags & SUSPENDABLE; /* by its `send`, `throw` or `close` */
    return calling == pml_loop(hook->python_thread) || (resumed && calling == pml_loop_around(hook->python_thread));
}

static void begin_pause(PmlHook *hook, struct pml_frame *top, PyFrameObject *frame, PyCodeObject *code)
{
    uint64_t number = ++pauses;
    if (!hang_bell(hook, frame, code, number)) {
        PyErr_Clear();
        return;
    }
    top->owner_bytes = Py_NewRef((PyObject *)(uintptr_t)top->id);
    top->call = PyFrame_GetLasti((PyFrameObject *)top->owner_bytes);
    top->callee = frame;
    pause_tracing(hook, top, number);
}

void pml_quiet_begin(PmlHook *hook, PyFrameObject *frame, PyCodeObject *code)
{
    PyFrameObject *caller = PyFrame_GetBack(frame);
    struct pml_frame *top = pausing_frame(hook, caller);
    if (top) {
        pml_quiet_learn(frame, code);
        if (top->direct && !top->code->loud && !(code->co_flags & SUSPENDABLE) && !catches(top))
            begin_pause(hook, top, frame, code);
    }
    Py_XDECREF(caller);
}

/* Whether a traceback leads from the paused frame, at its call, to the frame that was called. */
static bool leads_to_callee(const struct pml_frame *frame, PyObject *exception)
{
    PyTracebackObject *first = (PyTracebackObject *)PyException_GetTraceback(exception);
    bool found = false;
    for (const PyTracebackObject *at = first; at && at->tb_next && !found; at = at->tb_next)
        found = (const PyObject *)at->tb_frame == frame->owner_bytes && at->tb_lasti == frame->call &&
                at->tb_next->tb_frame == frame->callee;
    Py_XDECREF(first);
    return found;
}

/* Whether the paused frame still stands at its call, or stood there as it ended. */
static bool at_its_call(const struct pml_frame *frame)
{
    return PyFrame_GetLasti((PyFrameObject *)frame->owner_bytes) == frame->call;
}

/* The paused frame ended by the exception of its callee that is being handled: no line of it was missed. */
static bool left_by_callee(const struct pml_frame *frame)
{
    PyObject *handled = PyErr_GetHandledException();
    bool left = handled && at_its_call(frame) && leads_to_callee(frame, handled);
    Py_XDECREF(handled);
    return left;
}

/* The callee ends now, as it returns: its caller still stands at the call, and the callee's frame goes and is not one that was
 * kept (those have given up their code by the time they let the bell go, so that their place in it is no place at all). */
static bool in_time(const struct pml_frame *frame, const Bell *bell)
{
    if (collecting || !at_its_call(frame) || Py_REFCNT(bell->frame) > 0)
        return false;
    int place = PyFrame_GetLasti(bell->frame);
    return place >= 0 && place < bell->size;
}

static void tell_missed(struct pml_code *code)
{
    code->loud = true;
    for (int i = 0; i < code->subscribers; i++)
        if (code->subscriber[i]->recorder->recording)
            code->subscriber[i]->recorder->missed = true;
}

void pml_quiet_entering(const PmlHook *hook)
{
    const struct pml_frame *top = pml_frame_stack_top(&hook->stack);
    if (top && top->owner_bytes && !at_its_call(top))
        tell_missed(top->code);
}

/* A wrapper leaves: frames that it ran and whose end was not seen are closed. */
void pml_quiet_leaving(PmlHook *hook)
{
    struct pml_frame *top;
    while ((top = pml_frame_stack_top(&hook->stack)) && top->quiet && top->quiet == hook->depth) {
        if (top->owner_bytes && !left_by_callee(top))
            tell_missed(top->code);
        pml_statistics_sync(hook->state, top->sampled);
        pml_segment_close(top);
        pml_quiet_cut(hook, hook->stack.depth - 1);
    }
}

static struct pml_frame *paused_frame(const PmlHook *hook, uint64_t number)
{
    for (int i = hook->stack.depth - 1; i >= 0; i--)
        if (hook->stack.frame[i]->bell == number)
            return hook->stack.frame[i];
    return NULL;
}

PML_HOT static void end_pause(PmlHook *hook, struct pml_frame *frame)
{
    bool was_quiet = pml_quiet_now(hook);
    PyObject *owner_bytes = frame->owner_bytes;
    frame->quiet = 0;
    frame->bell = 0;
    frame->owner_bytes = NULL;
    if (was_quiet && !pml_quiet_now(hook))
        pml_hook_resume(hook);
    Py_XDECREF(owner_bytes);
}

PML_HOT void pml_quiet_call_ended(PmlHook *hook, uint64_t number)
{
    struct pml_frame *frame = paused_frame(hook, number);
    if (frame)
        end_pause(hook, frame);
}

static void ring(PmlHook *hook, const Bell *bell)
{
    struct pml_frame *frame = paused_frame(hook, bell->number);
    if (!frame)
        return;
    if (!in_time(frame, bell))
        tell_missed(frame->code);
    end_pause(hook, frame);
}

#else

void pml_quiet_begin(PmlHook *hook, PyFrameObject *frame, PyCodeObject *code)
{
}

bool pml_quiet_called_by_wrapper(PmlHook *hook, const PyCodeObject *code)
{
    return false;
}

void pml_quiet_entering(const PmlHook *hook)
{
}

void pml_quiet_leaving(PmlHook *hook)
{
}

static void ring(PmlHook *hook, const Bell *bell)
{
}

#endif

static void bell_dealloc(PyObject *self)
{
    Bell *bell = (Bell *)self;
    PyTypeObject *type = Py_TYPE(self);
    struct pml_state *state = bell->hook->state;
    if (pml_hook_is_here(bell->hook))
        ring(bell->hook, bell);
    Py_DECREF(bell->hook);
    if (state->spare_bell)
        type->tp_free(self);
    else
        state->spare_bell = bell;
    Py_DECREF(type);
}

/* A tracer that is set meanwhile calls what it finds in `f_trace`. */
static PyObject *bell_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    Py_RETURN_NONE;
}

static PyType_Slot bell_slots[] = {
    {Py_tp_doc, "Ends a pause of tracing when the frame that it hangs in ends."},
    {Py_tp_dealloc, bell_dealloc},
    {Py_tp_call, bell_call},
    {0, NULL},
};

PyType_Spec pml_bell_spec = {
    .name = "pytorch_memlab_c._native.Bell",
    .basicsize = sizeof(Bell),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = bell_slots,
};
