/* Our tool of sys.monitoring (see monitoring_tool.h). */
#include "trace/monitoring_tool.h"

#include <stdlib.h>
#include <string.h>

#include "lines/recorders.h"

/* Debuggers, coverage tools, profilers and optimizers have ids of their own, which we leave to them. */
static const int tools[] = {4, 3};
enum { TOOLS = sizeof tools / sizeof *tools };

/* Functions of sys.monitoring are kept, and numbers up to 256 always are there: to switch events off takes no memory.
 */
static const char *const names[PML_MONITORING_FUNCTIONS] = {
    [PML_GET_TOOL] = "get_tool",         [PML_USE_TOOL_ID] = "use_tool_id",
    [PML_SET_EVENTS] = "set_events",     [PML_SET_LOCAL_EVENTS] = "set_local_events",
    [PML_FREE_TOOL_ID] = "free_tool_id", [PML_REGISTER_CALLBACK] = "register_callback",
};

/* With our tool's id before the other arguments, of which one may be NULL: there was no memory for it. */
static PyObject *call(const struct pml_monitoring *monitoring, enum pml_monitoring_function which, PyObject *first,
                      PyObject *second)
{
    PyObject *args[] = {PyLong_FromLong(monitoring->tool), first, second};
    size_t count = second ? 3 : first ? 2 : 1;
    PyObject *result = args[0] ? PyObject_Vectorcall(monitoring->function[which], args, count, NULL) : NULL;
    Py_XDECREF(args[0]);
    return result;
}

static bool succeeded(PyObject *result)
{
    Py_XDECREF(result);
    return result;
}

static PyObject *event_number(const struct pml_monitoring *monitoring, const char *event)
{
    PyObject *events = PyObject_GetAttrString(monitoring->module, "events");
    PyObject *number = events ? PyObject_GetAttrString(events, event) : NULL;
    Py_XDECREF(events);
    return number;
}

static bool register_callback(const struct pml_monitoring *monitoring, PyObject *event, PyObject *function)
{
    return succeeded(call(monitoring, PML_REGISTER_CALLBACK, event, function));
}

static bool add_callback(struct pml_monitoring *monitoring, struct pml_monitoring_callback *callback)
{
    PyObject *function = PyCFunction_New(&callback->function, monitoring->owner);
    PyObject *event = function ? event_number(monitoring, callback->event) : NULL;
    bool done = event && PyList_Append(monitoring->registered, event) == 0;
    done = done && register_callback(monitoring, event, function);
    if (done)
        monitoring->events[callback->local] |= PyLong_AsLong(event);
    Py_XDECREF(event);
    Py_XDECREF(function);
    return done;
}

static void drop_callbacks(struct pml_monitoring *monitoring)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(monitoring->registered); i++)
        if (!register_callback(monitoring, PyList_GET_ITEM(monitoring->registered, i), Py_None))
            PyErr_Clear();
}

/* All is off; the numbers of events are not needed any more. */
static void forget_tool(struct pml_monitoring *monitoring)
{
    if (PyList_SetSlice(monitoring->registered, 0, PyList_GET_SIZE(monitoring->registered), NULL) < 0)
        PyErr_Clear();
    monitoring->events[false] = monitoring->events[true] = 0;
    monitoring->tool = 0;
}

static bool set_events(const struct pml_monitoring *monitoring, long events)
{
    PyObject *number = PyLong_FromLong(events);
    bool done = number && succeeded(call(monitoring, PML_SET_EVENTS, number, NULL));
    Py_XDECREF(number);
    return done;
}

static bool set_local_events(const struct pml_monitoring *monitoring, PyObject *code, long events)
{
    PyObject *number = PyLong_FromLong(events);
    bool done = number && succeeded(call(monitoring, PML_SET_LOCAL_EVENTS, code, number));
    Py_XDECREF(number);
    return done;
}

static bool take_tool(struct pml_monitoring *monitoring)
{
    for (int i = 0; i < TOOLS; i++) {
        monitoring->tool = tools[i];
        if (succeeded(call(monitoring, PML_USE_TOOL_ID, monitoring->name, NULL)))
            return true;
        PyErr_Clear();
    }
    monitoring->tool = 0;
    return false;
}

/* Whether another tool has our id. */
static bool is_displaced(const struct pml_monitoring *monitoring)
{
    PyObject *name = monitoring->tool ? call(monitoring, PML_GET_TOOL, NULL, NULL) : NULL;
    bool displaced = name && name != monitoring->name;
    Py_XDECREF(name);
    PyErr_Clear();
    return displaced;
}

/* What has our id by now keeps it. */
static void end(struct pml_monitoring *monitoring)
{
    if (monitoring->tool == 0) /* it was forgotten, or the interpreter ends */
        return;
    if (is_displaced(monitoring)) {
        forget_tool(monitoring);
        return;
    }
    if (!set_events(monitoring, 0))
        PyErr_Clear();
    drop_callbacks(monitoring);
    if (!succeeded(call(monitoring, PML_FREE_TOOL_ID, NULL, NULL)))
        PyErr_Clear();
    forget_tool(monitoring);
}

static bool begin(struct pml_monitoring *monitoring, struct pml_monitoring_callback *callbacks, int count)
{
    if (!take_tool(monitoring))
        return false;
    bool done = true;
    for (int i = 0; done && i < count; i++)
        done = add_callback(monitoring, &callbacks[i]);
    done = done && set_events(monitoring, monitoring->events[false]);
    if (!done)
        end(monitoring);
    return done;
}

bool pml_monitoring_tool_watch(struct pml_state *state, PyObject *code, struct pml_monitoring_callback *callbacks,
                               int count)
{
    struct pml_monitoring *monitoring = &state->monitoring;
    if (is_displaced(monitoring)) {
        pml_recorders_interrupt();
        forget_tool(monitoring);
    }
    if (monitoring->tool == 0 && !begin(monitoring, callbacks, count))
        return false;
    bool done = set_local_events(monitoring, code, monitoring->events[true]);
    monitoring->watched += done;
    if (monitoring->watched == 0)
        end(monitoring);
    return done;
}

bool pml_monitoring_tool_unwatch(struct pml_state *state, PyObject *code)
{
    struct pml_monitoring *monitoring = &state->monitoring;
    bool there = monitoring->tool && !is_displaced(monitoring);
    bool done = !there || set_local_events(monitoring, code, 0);
    if (--monitoring->watched == 0)
        end(monitoring);
    return done;
}

bool pml_monitoring_tool_displaced(struct pml_state *state)
{
    struct pml_compat_exception pending = pml_compat_exception_take();
    bool displaced = is_displaced(&state->monitoring);
    pml_compat_exception_put(pending);
    return displaced;
}

/* ---- which engine ---- */

int pml_monitoring_tool_begin(PyObject *owner)
{
    struct pml_monitoring *monitoring = &pml_state_of(owner)->monitoring;
    const char *engine = getenv("PYTORCH_MEMLAB_ENGINE");
    PyObject *module = PySys_GetObject("monitoring");
    monitoring->refused = !module || (engine && strcmp(engine, "settrace") == 0);
    if (monitoring->refused)
        return 0;
    monitoring->module = Py_NewRef(module);
    monitoring->name = PyUnicode_InternFromString("pytorch_memlab_c");
    monitoring->registered = PyList_New(0);
    monitoring->disable = PyObject_GetAttrString(module, "DISABLE");
    for (int i = 0; i < PML_MONITORING_FUNCTIONS; i++)
        if (!(monitoring->function[i] = PyObject_GetAttrString(module, names[i])))
            return -1;
    return monitoring->name && monitoring->registered && monitoring->disable ? 0 : -1;
}

static bool any_tool_is_free(struct pml_monitoring *monitoring)
{
    bool found = false;
    for (int i = 0; i < TOOLS && !found; i++) {
        monitoring->tool = tools[i];
        PyObject *tool = call(monitoring, PML_GET_TOOL, NULL, NULL);
        found = !tool || tool == Py_None; /* without memory it is seen when the id is taken */
        Py_XDECREF(tool);
    }
    monitoring->tool = 0;
    return found;
}

bool pml_monitoring_tool_is_used(struct pml_state *state)
{
    struct pml_monitoring *monitoring = &state->monitoring;
    if (monitoring->tool || monitoring->refused)
        return monitoring->tool;
    struct pml_compat_exception pending = pml_compat_exception_take();
    monitoring->refused = monitoring->crowded = !any_tool_is_free(monitoring);
    PyErr_Clear();
    pml_compat_exception_put(pending);
    return !monitoring->refused;
}

PyObject *pml_monitoring_tool_engine(PyObject *module, PyObject *unused)
{
    struct pml_state *state = pml_state_of(module);
    bool used = pml_monitoring_tool_is_used(state);
    return PyUnicode_FromString(used ? "monitoring" : state->monitoring.crowded ? "settrace: no tool id" : "settrace");
}
