/* Module initialisation, module state and the method table; no logic. */
#include "cpython/state.h"

#include <pthread.h>

#include "events/allocator_events.h"
#include "holders/failures.h"
#include "forks.h"

static struct PyModuleDef definition;

struct pml_state *pml_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

static PyObject *adopt_thread(PyObject *module, PyObject *unused)
{
    if (pml_hook_adopt(pml_state_of(module)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *any_enabled(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(pml_state_of(module)->enabled);
}

int pml_arguments_slot(PyObject *object)
{
    long slot = PyLong_AsLong(object);
    if (slot >= 0 && slot < PML_MAX_DEVICES)
        return (int)slot;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "device slot %ld is not in 0 to %d", slot, PML_MAX_DEVICES - 1);
    return -1;
}

static PyObject *set_target(PyObject *module, PyObject *device)
{
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    pml_segment_target_device = slot;
    Py_RETURN_NONE;
}

static PyObject *install_events(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(pml_allocator_events_install());
}

static PyObject *seed_cpu(PyObject *module, PyObject *args)
{
    unsigned long long pointer;
    long long size;
    if (!PyArg_ParseTuple(args, "KL:seed_cpu", &pointer, &size))
        return NULL;
    return PyBool_FromLong(pml_allocator_events_seed_cpu((void *)(uintptr_t)pointer, size));
}

static PyObject *seed_device(PyObject *module, PyObject *args)
{
    PyObject *device;
    long long level[PML_METRICS];
    if (!PyArg_ParseTuple(args, "OLLL:seed_device", &device, &level[PML_ACTIVE], &level[PML_ALLOCATED],
                          &level[PML_RESERVED]))
        return NULL;
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    pml_ledger_catch_up();
    bool fresh = !pml_meter_used(slot);
    for (int m = 0; fresh && m < PML_METRICS; m++)
        pml_ledger_adjust(slot, m, level[m]);
    return PyBool_FromLong(fresh);
}

static PyObject *inject_event(PyObject *module, PyObject *args)
{
    PyObject *device;
    unsigned long long pointer = 0;
    long long size, allocated = 0, reserved = 0;
    if (!PyArg_ParseTuple(args, "OL|LLK:inject_event", &device, &size, &allocated, &reserved, &pointer))
        return NULL;
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    pml_ledger_lock(slot);
    if (slot == PML_CPU)
        allocated = pml_meter_move(slot, size);
    else
        pml_meter_set(slot, size, (int64_t[PML_METRICS]){allocated, allocated, reserved});
    if (size < 0)
        pml_ledger_freed(slot, (const void *)(uintptr_t)pointer, allocated);
    else
        pml_ledger_allocated(slot, (const void *)(uintptr_t)pointer, size, allocated);
    pml_ledger_unlock(slot);
    Py_RETURN_NONE;
}

static PyObject *inject_failure(PyObject *module, PyObject *args)
{
    PyObject *device;
    long long asked, allocated, reserved, unused, total;
    if (!PyArg_ParseTuple(args, "OLLLLL:inject_failure", &device, &asked, &allocated, &reserved, &unused, &total))
        return NULL;
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    pml_failures_note_capacity(unused, total);
    pml_failures_note(slot, asked, allocated, reserved);
    Py_RETURN_NONE;
}

static PyObject *levels(PyObject *module, PyObject *device)
{
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    struct pml_levels now;
    pml_statistics_sync(pml_state_of(module), false);
    pml_meter_read(slot, &now);
    return Py_BuildValue("(LLLLL)", (long long)now.level[PML_ACTIVE], (long long)now.level[PML_ALLOCATED],
                         (long long)now.level[PML_RESERVED], (long long)now.gross, (long long)now.count);
}

static PyObject *devices_used(PyObject *module, PyObject *unused)
{
    pml_ledger_catch_up();
    PyObject *list = PyList_New(0);
    for (int d = 0; list && d < pml_meter_devices(); d++) {
        if (!pml_meter_used(d))
            continue;
        PyObject *slot = PyLong_FromLong(d);
        if (!slot || PyList_Append(list, slot) < 0)
            Py_CLEAR(list);
        Py_XDECREF(slot);
    }
    return list;
}

static PyObject *after_fork_child(PyObject *module, PyObject *unused)
{
    struct pml_state *state = pml_state_of(module);
    state->enabled = 0;
    state->forks++;
    state->statistics.reading = false;
    pml_hook_after_fork(state);
    pml_tracer_after_fork(state);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"enter", pml_enter, METH_O,
     "enter(entries): append an Entry: this thread's hook is installed until it is deleted. Nothing is appended if that fails."},
    {"adopt_thread", adopt_thread, METH_NOARGS, "Install this thread's hook until no profiler is enabled."},
    {"any_enabled", any_enabled, METH_NOARGS, "Whether some profiler is enabled, so that new threads are to be followed."},
    {"set_target", set_target, METH_O, "The device slot that a line is charged to when it ends."},
    {"install_events", install_events, METH_NOARGS, "Follow PyTorch's allocators; 1: CPU, 2: CUDA, 4: CUDA streams."},
    {"seed_cpu", seed_cpu, METH_VARARGS, "seed_cpu(pointer, bytes): a block allocated before."},
    {"seed_device", seed_device, METH_VARARGS, "seed_device(slot, active, allocated, reserved): levels before."},
    {"inject_event", inject_event, METH_VARARGS,
     "inject_event(slot, size, allocated=0, reserved=0, pointer=0): an allocator event with made-up bytes, for tests."},
    {"inject_failure", inject_failure, METH_VARARGS,
     "inject_failure(slot, asked, allocated, reserved, unused, total): an allocation that failed, for tests."},
    {"levels", levels, METH_O, "(active, allocated, reserved, gross bytes, allocations) of a device slot, now."},
    {"devices_used", devices_used, METH_NOARGS, "Device slots on which anything was seen."},
    {"connect_statistics", pml_statistics_connect, METH_VARARGS, "connect_statistics(read, reset, devices)."},
    {"use_statistics_only", pml_statistics_only, METH_O, "Measure accelerators by statistics instead of events."},
    {"add_column", pml_statistics_add_column, METH_VARARGS, "add_column(path, kind) -> id; 0 peak, 1 level, 2 count."},
    {"sample", pml_statistics_sample, METH_NOARGS, "Read the statistics now; False if reading ever failed."},
    {"kept_peaks", pml_statistics_kept, METH_O, "Peaks of a device that resets of the profiler have hidden, or None."},
    {"forget_peaks", pml_statistics_forget, METH_O, "Drop them: the user has reset the peaks."},
    {"merge_peaks", pml_statistics_merge_peaks, METH_VARARGS, "merge_peaks(into, from): the higher of each peak."},
    {"saved_connect", pml_saved_figures_connect, METH_VARARGS,
     "saved_connect(samples, is_parameter_of) -> bool: see what autograd saves; samples: (tensor, storage, memory, "
     "bytes)."},
    {"saved_follow", pml_saved_figures_follow, METH_O, "Follow what autograd saves, or forget it."},
    {"saved_hooks_are_set", pml_saved_figures_hooks_are_set, METH_NOARGS, "Whether this thread has saved-tensor hooks set."},
    {"run_child", pml_child_rss_run, METH_VARARGS,
     "run_child(starter, arguments, executable, directory) -> (exit code, bytes of ru_maxrss), or two None if someone "
     "else has waited for the child."},
    {"walk_instances", pml_storage_walk_instances, METH_O,
     "All live objects of a type, or of any type in a tuple, by their types alone."},
    {"try_each", pml_storage_walk_try_each, METH_VARARGS, 
     "try_each(question, list): what a function or a getset descriptor gives for each, None where it raised."},
    {"find_answers", pml_storage_walk_find_answers, METH_VARARGS,
     "find_answers(list, question, ...): for each question (object, answer) of all whose answer is not None or False."},
    {"sum_answers", pml_storage_walk_sum_answers, METH_VARARGS, "sum_answers(question, list): the sum of the integers answered."},
    {"walk_kinds", pml_storage_walk_kinds, METH_VARARGS, "A list of live objects for each type given, by their types alone."},
    {"enter_tensors", pml_storages_enter_tensors, METH_VARARGS,
     "enter_tensors(tensors, storages, devices, (handle, key, device, address, bytes)) -> (those without a storage, those "
     "whose storage has a size and no memory)."},
    {"count_once", pml_storages_count_once, METH_O, "Order storages by address; count bytes once that several have."},
    {"set_cpu_blocks", pml_storages_set_cpu_blocks, METH_O, "Set the blocks that PyTorch's CPU allocator gave for storages."},
    {"sum_storages", pml_storages_sum, METH_O, "(bytes counted, bytes of blocks, bytes counted without a block)."},
    {"largest_first", pml_storages_largest_first, METH_VARARGS,
     "largest_first(storages, rows) -> (storages, tensors of those that can have no row)."},
    {"after_fork_child", after_fork_child, METH_NOARGS, "Tracing off, in the child of a fork."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type ? PyModule_AddType(module, *type) : -1;
}

static int execute(PyObject *module)
{
    static bool registered;
    struct pml_state *state = pml_state_of(module);
    if (add_type(module, &pml_hook_spec, &state->hook_type) < 0 ||
        add_type(module, &pml_entry_spec, &state->entry_type) < 0 ||
        add_type(module, &pml_tracer_spec, &state->tracer_type) < 0 ||
        add_type(module, &pml_switch_spec, &state->switch_type) < 0 ||
        add_type(module, &pml_window_block_spec, &state->window_block_type) < 0 ||
        add_type(module, &pml_peak_window_spec, &state->peak_window_type) < 0 ||
        add_type(module, &pml_holders_type_spec, &state->holders_type) < 0 ||
        add_type(module, &pml_storage_type_spec, &state->storage_type) < 0)
        return -1;
    state->hook_key = PyUnicode_InternFromString("pytorch_memlab_c.hook");
    state->statistics.kept = PyDict_New();
    state->statistics.columns = PyList_New(0);
    if (!state->hook_key || !state->statistics.kept || !state->statistics.columns)
        return -1;
    if (!registered && pthread_atfork(pml_forks_before, pml_forks_after, pml_forks_after) == 0)
        registered = true;
    return PyModule_AddIntConstant(module, "MAX_DEVICES", PML_MAX_DEVICES);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct pml_state *state = pml_state_of(module);
    Py_VISIT(state->hook_type);
    Py_VISIT(state->entry_type);
    Py_VISIT(state->tracer_type);
    Py_VISIT(state->switch_type);
    Py_VISIT(state->window_block_type);
    Py_VISIT(state->peak_window_type);
    Py_VISIT(state->holders_type);
    Py_VISIT(state->storage_type);
    Py_VISIT(state->statistics.read);
    Py_VISIT(state->statistics.reset);
    Py_VISIT(state->statistics.devices);
    Py_VISIT(state->statistics.kept);
    Py_VISIT(state->statistics.columns);
    return 0;
}

static int clear(PyObject *module)
{
    struct pml_state *state = pml_state_of(module);
    Py_CLEAR(state->hook_type);
    Py_CLEAR(state->entry_type);
    Py_CLEAR(state->tracer_type);
    Py_CLEAR(state->switch_type);
    Py_CLEAR(state->window_block_type);
    Py_CLEAR(state->peak_window_type);
    Py_CLEAR(state->holders_type);
    Py_CLEAR(state->storage_type);
    Py_CLEAR(state->hook_key);
    Py_CLEAR(state->statistics.read);
    Py_CLEAR(state->statistics.reset);
    Py_CLEAR(state->statistics.devices);
    Py_CLEAR(state->statistics.kept);
    Py_CLEAR(state->statistics.columns);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    PML_ONE_INTERPRETER
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "The engine: allocator events, the trace hook, and line counters.",
    .m_size = sizeof(struct pml_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
