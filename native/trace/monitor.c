/* Events of sys.monitoring (see monitor.h).
 *
 * Exceptions that are thrown into frames or leave them cannot be local events before Python 3.15: they are on for all
 * code, which changes no bytecode. The callbacks never raise.
 */
#include "trace/monitor.h"

#include <limits.h>

#include "holders/ledger.h"
#include "lines/codes.h"
#include "lines/recorders.h"
#include "trace/frame_events.h"
#include "trace/hook.h"
#include "trace/monitoring_tool.h"

/* ---- the end of a frame: its variables go, until the frame that called it is on another line: no event says so ----
 */

static _Thread_local struct {
    const PyFrameObject *frame; /* only compared, as is */
    const PyCodeObject *code;   /* since another frame may come to be where this one was */
    int offset;
} caller;

static PyCodeObject *code_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame holds it */
    return code;
}

static void remember_caller(PyFrameObject *frame)
{
    PyFrameObject *back = PyFrame_GetBack(frame);
    caller.frame = back;
    caller.code = back ? code_of(back) : NULL;
    caller.offset = back ? pml_compat_offset(back) : 0;
    Py_XDECREF(back);
}

static bool is_at_caller(PyFrameObject *frame)
{
    if (frame != caller.frame || !frame)
        return frame == caller.frame;
    PyCodeObject *code = code_of(frame);
    int offset = pml_compat_offset(frame);
    return code == caller.code &&
           (offset == caller.offset || PyCode_Addr2Line(code, offset) == PyCode_Addr2Line(code, caller.offset));
}

static bool is_ending(void)
{
    return PyGILState_Check() && is_at_caller(PyEval_GetFrame());
}

/* ---- callbacks: (code, offset, ...); LINE has the line in place of the offset, JUMP both ends. A program can get hold
 * of them (`register_callback` returns the last one), and call them with anything. ---- */

static bool is_event(PyObject *const *args, Py_ssize_t count, Py_ssize_t least)
{
    return count >= least && PyCode_Check(args[0]);
}

/* 0 for what is no such number. */
static int number_of(PyObject *object)
{
    int overflow = 0;
    long number = PyLong_Check(object) ? PyLong_AsLongAndOverflow(object, &overflow) : 0;
    return overflow || number < 0 || number > INT_MAX ? 0 : (int)number;
}

struct event {
    struct pml_state *state;
    PmlHook *hook;        /* of the thread */
    PyFrameObject *frame; /* NULL: of no profiled code object, or memory ran out */
};

static struct event event_of(PyObject *module, PyObject *const *args, Py_ssize_t count, Py_ssize_t least)
{
    struct event event = {.state = pml_state_of(module)};
    if (!is_event(args, count, least) || !pml_codes_find(args[0]))
        return event;
    event.hook = pml_hook_of_thread(event.state);
    event.frame = event.hook ? PyEval_GetFrame() : NULL;
    if (!event.frame) {
        PyErr_Clear();
        pml_recorders_fail();
        return event;
    }
    pml_ledger_set_phase(PML_RUNNING);
    pml_frame_stack_drop_forgotten(&event.hook->stack);
    return event;
}

static PyObject *on_call(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct event event = event_of(module, args, count, 2);
    if (event.frame && (event.state->enabled || event.hook->depth > 0)) /* else a call around the decorator */
        pml_frame_events_call(event.state, &event.hook->stack, event.frame);
    Py_RETURN_NONE;
}

static PyObject *on_raise(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct event event = event_of(module, args, count, 3);
    if (event.frame)
        pml_frame_events_exception(&event.hook->stack, event.frame, args[2]);
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct event event = event_of(module, args, count, 3);
    if (event.frame) {
        pml_frame_events_return(event.state, &event.hook->stack, event.frame);
        remember_caller(event.frame);
    }
    Py_RETURN_NONE;
}

static PyObject *on_line(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct event event = event_of(module, args, count, 2);
    if (event.frame)
        pml_frame_events_line(event.state, &event.hook->stack, event.frame, number_of(args[1]));
    Py_RETURN_NONE;
}

/* The rounds of a loop on one line have no other event. Other jumps need not be reported again. */
static PyObject *on_jump(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (!is_event(args, count, 3))
        Py_RETURN_NONE;
    PyCodeObject *code = (PyCodeObject *)args[0];
    int from = number_of(args[1]), to = number_of(args[2]);
    int line = PyCode_Addr2Line(code, to);
    if (to >= from || line != PyCode_Addr2Line(code, from))
        return Py_NewRef(pml_state_of(module)->monitoring.disable);
    struct event event = event_of(module, args, count, 3);
    if (event.frame)
        pml_frame_events_line(event.state, &event.hook->stack, event.frame, line);
    Py_RETURN_NONE;
}

static struct pml_monitoring_callback callbacks[] = {
#define CALLBACK(event, local, function) \
    { \
        event, local, \
        { \
            event, (PyCFunction)(void (*)(void))(function), METH_FASTCALL, NULL \
        } \
    }
    CALLBACK("PY_START", true, on_call),     CALLBACK("PY_RESUME", true, on_call),
    CALLBACK("PY_RETURN", true, on_return),  CALLBACK("PY_YIELD", true, on_return),
    CALLBACK("LINE", true, on_line),         CALLBACK("JUMP", true, on_jump),
    CALLBACK("PY_THROW", false, on_call),    CALLBACK("RAISE", false, on_raise),
    CALLBACK("PY_UNWIND", false, on_return),
#undef CALLBACK
};

/* ---- code objects ---- */

static bool watch(struct pml_state *state, struct pml_code *known, PyObject *code)
{
    pml_ledger_ask_if_ending(is_ending);
    known->watched = pml_monitoring_tool_watch(state, code, callbacks, (int)(sizeof callbacks / sizeof *callbacks));
    return known->watched;
}

/* Its frames have no more events, not even when they end. */
static bool unwatch(struct pml_state *state, struct pml_code *known, PyObject *code)
{
    for (PmlHook *hook = state->hooks; hook; hook = hook->next)
        pml_frame_stack_forget(&hook->stack, known);
    known->watched = false;
    return pml_monitoring_tool_unwatch(state, code);
}

bool pml_monitor_update(struct pml_state *state, PyObject *code)
{
    struct pml_code *known = pml_codes_find(code);
    bool wanted = known && pml_codes_recorded(known);
    if (!known || known->watched == wanted || (wanted && !pml_monitoring_tool_is_used(state)))
        return true;
    struct pml_compat_exception pending = pml_compat_exception_take();
    bool done = wanted ? watch(state, known, code) : unwatch(state, known, code);
    PyErr_Clear();
    pml_compat_exception_put(pending);
    return done;
}
