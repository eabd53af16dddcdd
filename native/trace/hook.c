/* The trace function (PyEval_SetTrace): one hook a thread, above whatever tracer was there.
 *
 * Ownership: the thread's state dict owns the hook; while installed, the interpreter holds one more reference. The hook
 * owns the tracer below it. It never raises.
 */
#include "trace/hook.h"

#include "holders/ledger.h"
#include "lines/recorders.h"
#include "meter/window.h"
#include "trace/frame_events.h"
#include "trace/monitoring_tool.h"

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

/* ---- installing ---- */

/* On the calling thread. */
static bool installed(const PmlHook *hook)
{
    return pml_compat_trace_object(PyThreadState_Get()) == (const PyObject *)hook;
}

static void set_below(PmlHook *hook, Py_tracefunc function, PyObject *object)
{
    PyObject *old = hook->below_object;
    hook->below = function;
    hook->below_object = Py_XNewRef(object);
    Py_XDECREF(old);
}

void pml_hook_install(PmlHook *hook)
{
    if (!installed(hook))
        set_below(hook, pml_compat_trace_function(hook->python_thread), pml_compat_trace_object(hook->python_thread));
    hook->traces = true;
    PyEval_SetTrace(trace, (PyObject *)hook);
}

static void take_down(PmlHook *hook)
{
    if (installed(hook))
        PyEval_SetTrace(hook->below, hook->below_object);
    set_below(hook, NULL, NULL);
    pml_frame_stack_cut(&hook->stack, 0);
    hook->adopted = hook->traces = false;
}

static bool any_hook_in_use(const struct pml_state *state)
{
    for (const PmlHook *hook = state->hooks; hook; hook = hook->next)
        if (hook->depth > 0)
            return true;
    return false;
}

static void leave(PmlHook *hook, int entries)
{
    if (hook->depth == 0)
        return;
    pml_ledger_set_phase(PML_RUNNING);
    if (pml_hook_displaced(hook))
        pml_recorders_interrupt();
    hook->depth = hook->depth > entries ? hook->depth - entries : 0;
    if (hook->depth == 0 && hook->traces)
        take_down(hook);
    if (!any_hook_in_use(hook->state))
        pml_ledger_set_phase(PML_UNWATCHED);
}

/* What another thread decided for this one is done here. True if the hook is gone. */
static bool catch_up(PmlHook *hook)
{
    int entries = hook->leaving;
    hook->leaving = 0;
    if (hook->adopted && hook->state->enabled == 0) {
        hook->adopted = false;
        entries++;
    }
    if (entries)
        leave(hook, entries);
    return hook->depth == 0;
}

/* The tracer below may have replaced or removed itself: what it left is below us from now on. */
static void stay_on_top(PmlHook *hook)
{
    if (installed(hook) || hook->depth == 0)
        return;
    struct pml_compat_exception pending = pml_compat_exception_take();
    pml_hook_install(hook);
    pml_compat_exception_put(pending);
}

static int call_below(PmlHook *hook, PyFrameObject *frame, int what, PyObject *arg)
{
    PyObject *object = Py_XNewRef(hook->below_object);
    int result = hook->below(object, frame, what, arg);
    stay_on_top(hook);
    Py_XDECREF(object);
    return result;
}

/* Of the argument of an exception event, a tuple; else NULL. */
static PyObject *raised_type(PyObject *arg)
{
    return arg && PyTuple_Check(arg) && PyTuple_GET_SIZE(arg) ? PyTuple_GET_ITEM(arg, 0) : NULL;
}

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    PmlHook *hook = (PmlHook *)self;
    if ((hook->leaving || hook->adopted) && catch_up(hook)) {
        Py_tracefunc next = pml_compat_trace_function(hook->python_thread);
        return next ? next(pml_compat_trace_object(hook->python_thread), frame, what, arg) : 0;
    }
    pml_ledger_set_phase(PML_RUNNING);
    switch (what) {
    case PyTrace_LINE: pml_frame_events_line(hook->state, &hook->stack, frame, 0); break;
    case PyTrace_CALL: pml_frame_events_call(hook->state, &hook->stack, frame); break;
    case PyTrace_RETURN: pml_frame_events_return(hook->state, &hook->stack, frame); break;
    case PyTrace_EXCEPTION: pml_frame_events_exception(&hook->stack, frame, raised_type(arg)); break;
    default: break;
    }
    return hook->below ? call_below(hook, frame, what, arg) : 0;
}

/* ---- the Python object ---- */

static PmlHook *hook_new(struct pml_state *state)
{
    PmlHook *hook = (PmlHook *)state->hook_type->tp_alloc(state->hook_type, 0);
    if (!hook)
        return NULL;
    hook->state = state;
    hook->python_thread = PyThreadState_Get();
    hook->thread = hook->python_thread->thread_id;
    hook->next = state->hooks;
    state->hooks = hook;
    return hook;
}

/* A new hook of this thread, borrowed from the thread's dict. */
static PmlHook *add_hook(struct pml_state *state, PyObject *dict)
{
    PmlHook *hook = hook_new(state);
    if (hook && PyDict_SetItem(dict, state->hook_key, (PyObject *)hook) < 0)
        Py_CLEAR(hook);
    Py_XDECREF(hook);
    return hook;
}

static PmlHook *find_hook(struct pml_state *state)
{
    PyObject *dict = PyThreadState_GetDict();
    if (!dict) {
        PyErr_SetString(PyExc_RuntimeError, "this thread has no Python state to trace");
        return NULL;
    }
    PyObject *hook = PyDict_GetItemWithError(dict, state->hook_key);
    return hook || PyErr_Occurred() ? (PmlHook *)hook : add_hook(state, dict);
}

static uint64_t hooks_gone; /* counts the hooks that were freed */
static _Thread_local struct {
    PmlHook *hook;
    uint64_t gone; /* `hooks_gone` when it was found */
} known;

static bool is_known(void)
{
    return known.hook && known.gone == hooks_gone && known.hook->python_thread == PyThreadState_Get();
}

PmlHook *pml_hook_of_thread(struct pml_state *state)
{
    if (!is_known()) {
        known.hook = find_hook(state);
        known.gone = hooks_gone;
    }
    return known.hook;
}

/* Events were missed: entries of frames that are no longer on the thread's stack are dropped, and the innermost
 * remaining one is moved to its present line. `frame` is the thread's present frame. */
static void resynchronise(PmlHook *hook, PyFrameObject *frame)
{
    int found = 0;
    PyFrameObject *at = (PyFrameObject *)Py_XNewRef((PyObject *)frame);
    while (at && found == 0) {
        found = pml_frame_stack_find(&hook->stack, at) + 1;
        if (found) {
            pml_frame_stack_cut(&hook->stack, found);
            if (at != frame && PyFrame_GetLineNumber(at) != hook->stack.frame[found - 1]->line)
                pml_frame_events_line(hook->state, &hook->stack, at, 0);
        }
        PyFrameObject *back = PyFrame_GetBack(at);
        Py_DECREF(at);
        at = back;
    }
    Py_XDECREF(at);
    if (!found)
        pml_frame_stack_cut(&hook->stack, 0);
}

/* Returns a new reference to this thread's hook, installed; each entry needs one `leave`. A hook that a plain
 * `sys.settrace(None)` or a failing Python tracer removed is installed again; another tracer is not replaced. */
PyObject *pml_hook_enter(struct pml_state *state)
{
    PmlHook *hook = pml_hook_of_thread(state);
    if (!hook)
        return NULL;
    if (pml_monitoring_tool_is_used(state)) {
        hook->depth++;
        return Py_NewRef((PyObject *)hook);
    }
    bool lost = hook->depth > 0 && !pml_compat_trace_function(hook->python_thread);
    if (lost) {
        pml_recorders_interrupt();
        resynchronise(hook, PyEval_GetFrame());
    }
    if (hook->depth++ == 0 || lost)
        pml_hook_install(hook);
    return Py_NewRef((PyObject *)hook);
}

int pml_hook_adopt(struct pml_state *state)
{
    PmlHook *hook = pml_hook_of_thread(state);
    if (!hook)
        return -1;
    if (hook->adopted)
        return 0;
    hook->adopted = true;
    if (hook->depth++ == 0)
        pml_hook_install(hook);
    return 0;
}

bool pml_hook_displaced(const PmlHook *hook)
{
    return hook->traces && hook->depth > 0 && pml_hook_is_here(hook) && !installed(hook);
}

void pml_hook_after_fork(struct pml_state *state)
{
    pml_window_forget_all();
    for (PmlHook *hook = state->hooks; hook; hook = hook->next) {
        bool own = installed(hook);
        for (int i = 0; i < hook->stack.depth; i++)
            hook->stack.frame[i]->window.next = hook->stack.frame[i]->window.prev = &hook->stack.frame[i]->window;
        hook->depth = hook->leaving = 0;
        if (own)
            take_down(hook);
        else
            pml_frame_stack_cut(&hook->stack, 0);
    }
}

/* From another thread it takes effect at the hook's next event. */
void pml_hook_leave(PmlHook *hook)
{
    if (pml_hook_is_here(hook))
        leave(hook, 1);
    else
        hook->leaving++;
}

static int event_of(PyObject *name)
{
    static const char *const names[] = {"call", "exception", "line", "return"};
    static const int events[] = {PyTrace_CALL, PyTrace_EXCEPTION, PyTrace_LINE, PyTrace_RETURN};
    for (int i = 0; i < 4; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return events[i];
    return -1;
}

/* Called as a Python trace function, when a program takes `sys.gettrace()` away and puts it back with `sys.settrace`:
 * the C trace function is installed again. */
static PyObject *hook_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PmlHook *hook = (PmlHook *)self;
    PyObject *frame, *event, *arg;
    if (!PyArg_ParseTuple(args, "O!OO:trace", &PyFrame_Type, &frame, &event, &arg))
        return NULL;
    if (hook->depth == 0 || !pml_hook_is_here(hook)) {
        PyEval_SetTrace(NULL, NULL);
        Py_RETURN_NONE;
    }
    resynchronise(hook, (PyFrameObject *)frame);
    PyEval_SetTrace(trace, self);
    int what = event_of(event);
    if (what >= 0 && trace(self, (PyFrameObject *)frame, what, arg) < 0)
        return NULL;
    return Py_NewRef(self);
}

static int hook_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((PmlHook *)self)->below_object);
    return 0;
}

static int hook_clear(PyObject *self)
{
    Py_CLEAR(((PmlHook *)self)->below_object);
    ((PmlHook *)self)->below = NULL;
    return 0;
}

static void hook_dealloc(PyObject *self)
{
    PmlHook *hook = (PmlHook *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    hooks_gone++;
    for (PmlHook **link = &hook->state->hooks; *link; link = &(*link)->next)
        if (*link == hook) {
            *link = hook->next;
            break;
        }
    hook_clear(self);
    pml_frame_stack_free(&hook->stack);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot hook_slots[] = {
    {Py_tp_doc, "One thread's trace hook."}, {Py_tp_call, hook_call},
    {Py_tp_traverse, hook_traverse},         {Py_tp_clear, hook_clear},
    {Py_tp_dealloc, hook_dealloc},           {0, NULL},
};

PyType_Spec pml_hook_spec = {
    .name = "pytorch_memlab_c._native.Hook",
    .basicsize = sizeof(PmlHook),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = hook_slots,
};
