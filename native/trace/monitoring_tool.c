/* Our tool of sys.monitoring (see monitoring_tool.h). */
#include "trace/monitoring_tool.h"

#include <stdlib.h>
#include <string.h>

/* Debuggers, coverage tools, profilers and optimizers have ids of their own, which we leave to them. */
static const int tools[] = {4, 3};
enum { TOOLS = sizeof tools / sizeof *tools };

static bool succeeded(PyObject *result)
{
    Py_XDECREF(result);
    return result;
}

static long event_number(const struct pml_monitoring *monitoring, const char *event)
{
    PyObject *events = PyObject_GetAttrString(monitoring->module, "events");
    PyObject *value = events ? PyObject_GetAttrString(events, event) : NULL;
    long number = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    Py_XDECREF(events);
    return number;
}

static bool register_callback(struct pml_monitoring *monitoring, long event, PyObject *function)
{
    return succeeded(
        PyObject_CallMethod(monitoring->module, "register_callback", "ilO", monitoring->tool, event, function));
}

static bool add_callback(struct pml_monitoring *monitoring, struct pml_monitoring_callback *callback)
{
    PyObject *function = PyCFunction_New(&callback->function, monitoring->owner);
    long event = function ? event_number(monitoring, callback->event) : -1;
    bool done = event > 0 && register_callback(monitoring, event, function);
    Py_XDECREF(function);
    if (done)
        monitoring->events[callback->local] |= event;
    return done;
}

static void drop_callbacks(struct pml_monitoring *monitoring)
{
    long events = monitoring->events[false] | monitoring->events[true];
    for (long event = 1; event <= events; event <<= 1)
        if ((events & event) && !register_callback(monitoring, event, Py_None))
            PyErr_Clear();
    monitoring->events[false] = monitoring->events[true] = 0;
}

static bool set_events(const struct pml_monitoring *monitoring, long events)
{
    return succeeded(PyObject_CallMethod(monitoring->module, "set_events", "il", monitoring->tool, events));
}

static bool set_local_events(const struct pml_monitoring *monitoring, PyObject *code, long events)
{
    return succeeded(
        PyObject_CallMethod(monitoring->module, "set_local_events", "iOl", monitoring->tool, code, events));
}

static bool take_tool(struct pml_monitoring *monitoring)
{
    for (int i = 0; i < TOOLS && monitoring->tool == 0; i++) {
        if (succeeded(PyObject_CallMethod(monitoring->module, "use_tool_id", "is", tools[i], "pytorch_memlab_c")))
            monitoring->tool = tools[i];
        else
            PyErr_Clear();
    }
    return monitoring->tool != 0;
}

static void end(struct pml_monitoring *monitoring)
{
    if (!set_events(monitoring, 0))
        PyErr_Clear();
    drop_callbacks(monitoring);
    if (!succeeded(PyObject_CallMethod(monitoring->module, "free_tool_id", "i", monitoring->tool)))
        PyErr_Clear();
    monitoring->tool = 0;
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
    if (monitoring->watched == 0 && !begin(monitoring, callbacks, count))
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
    bool done = set_local_events(monitoring, code, 0);
    if (--monitoring->watched == 0)
        end(monitoring);
    return done;
}

/* ---- which engine ---- */

static bool find_module(struct pml_monitoring *monitoring)
{
    if (monitoring->module)
        return true;
    const char *engine = getenv("PYTORCH_MEMLAB_ENGINE");
    PyObject *module = PySys_GetObject("monitoring");
    if (!module || (engine && strcmp(engine, "settrace") == 0))
        return false;
    monitoring->disable = PyObject_GetAttrString(module, "DISABLE");
    monitoring->module = monitoring->disable ? Py_NewRef(module) : NULL;
    return monitoring->module;
}

static bool any_tool_is_free(const struct pml_monitoring *monitoring)
{
    bool found = false;
    for (int i = 0; i < TOOLS && !found; i++) {
        PyObject *tool = PyObject_CallMethod(monitoring->module, "get_tool", "i", tools[i]);
        found = tool == Py_None;
        Py_XDECREF(tool);
    }
    return found;
}

bool pml_monitoring_tool_is_used(struct pml_state *state)
{
    struct pml_monitoring *monitoring = &state->monitoring;
    if (monitoring->tool || monitoring->refused)
        return monitoring->tool;
    struct pml_compat_exception pending = pml_compat_exception_take();
    bool there = find_module(monitoring);
    monitoring->refused = !there || !any_tool_is_free(monitoring);
    monitoring->crowded = there && monitoring->refused;
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
