/* Module initialisation and the method table; no logic. */
#include "child/child_rss.h"
#include "cpython/state.h"
#include "devices.h"
#include "fork.h"
#include "live/chains.h"
#include "live/storage_type.h"
#include "live/storage_walk.h"
#include "live/storages.h"
#include "testing.h"
#include "trace/hook.h"
#include "trace/statistics.h"
#include "types/growth_figures.h"
#include "types/entry.h"
#include "types/holders_type.h"
#include "trace/monitoring_tool.h"
#include "types/peak_window.h"
#include "types/saved_figures.h"
#include "types/snapshot_data.h"
#include "types/snapshot.h"
#include "types/tracer.h"
#include "types/with_blocks.h"

static PyMethodDef methods[] = {
    {"enter", pml_entry_enter, METH_O,
     "enter(entries): append an Entry: this thread's hook is installed until it is deleted. Nothing if that fails."},
    {"adopt_thread", pml_entry_adopt_thread, METH_NOARGS, "Install this thread's hook until no profiler is enabled."},
    {"any_enabled", pml_entry_any_enabled, METH_NOARGS,
     "Whether some profiler is enabled, so that new threads are to be followed."},
    {"engine", pml_monitoring_tool_engine, METH_NOARGS,
     "Where trace events come from: \"monitoring\", \"settrace\", or \"settrace: no tool id\" if all were taken."},
    {"set_target", pml_devices_set_target, METH_O, "The device slot that a line is charged to when it ends."},
    {"install_events", pml_devices_install_events, METH_NOARGS,
     "Follow PyTorch's allocators; 1: CPU, 2: CUDA, 4: CUDA streams."},
    {"events_displaced", pml_devices_events_displaced, METH_NOARGS,
     "Whether another tool has led the calls that are followed elsewhere."},
    {"forget_blocks", pml_devices_forget_blocks, METH_NOARGS,
     "Forget live blocks and the CPU's level: events were missed."},
    {"seed_cpu", pml_devices_seed_cpu, METH_VARARGS, "seed_cpu(pointer, bytes): a block allocated before."},
    {"seed_device", pml_devices_seed_device, METH_VARARGS,
     "seed_device(slot, active, allocated, reserved): levels before."},
    {"inject_event", pml_testing_inject_event, METH_VARARGS,
     "inject_event(slot, size, allocated=0, reserved=0, pointer=0): an allocator event with made-up bytes, for tests."},
    {"inject_failure", pml_testing_inject_failure, METH_VARARGS,
     "inject_failure(slot, asked, allocated, reserved, unused, total): an allocation that failed, for tests."},
    {"last_failure", pml_holders_type_last_failure, METH_NOARGS,
     "The number of this thread's last allocation that failed; 0: none."},
    {"levels", pml_devices_levels, METH_O, "The DeviceLevels of a device slot, now."},
    {"devices_used", pml_devices_used, METH_NOARGS, "Device slots on which anything was seen."},
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
    {"saved_learn_wrapper", pml_saved_figures_learn_wrapper, METH_VARARGS,
     "saved_learn_wrapper(wrapper, inside) -> bool: know tensors of the wrapper's kind for the tensor inside."},
    {"saved_follow", pml_saved_figures_follow, METH_O, "Follow what autograd saves, or forget it."},
    {"saved_hooks_are_set", pml_saved_figures_hooks_are_set, METH_NOARGS,
     "Whether this thread has saved-tensor hooks set."},
    {"run_child", pml_child_rss_run, METH_VARARGS,
     "run_child(starter, arguments, executable, directory) -> (exit code, bytes of ru_maxrss), or two None if someone "
     "else has waited for the child."},
    {"walk_instances", pml_storage_walk_instances, METH_O,
     "All live objects of a type, or of any type in a tuple, by their types alone."},
    {"try_each", pml_storage_walk_try_each, METH_VARARGS,
     "try_each(question, list): what a function or a getset descriptor gives for each, None where it raised."},
    {"find_answers", pml_storage_walk_find_answers, METH_VARARGS,
     "find_answers(list, question, ...): for each question (object, answer) of all whose answer is not None or False."},
    {"sum_answers", pml_storage_walk_sum_answers, METH_VARARGS,
     "sum_answers(question, list): the sum of the integers answered."},
    {"walk_kinds", pml_storage_walk_kinds, METH_VARARGS,
     "A list of live objects for each type given, by their types alone."},
    {"enter_tensors", pml_storages_enter_tensors, METH_VARARGS,
     "enter_tensors(tensors, storages, devices, (handle, key, device, address, bytes)) -> (those without a storage, "
     "those whose storage has a size and no memory)."},
    {"count_once", pml_storages_count_once, METH_O, "Order storages by address; count bytes once that several have."},
    {"set_cpu_blocks", pml_storages_set_cpu_blocks, METH_O,
     "Set the blocks that PyTorch's CPU allocator gave for storages."},
    {"sum_storages", pml_storages_sum, METH_O, "The StorageSums of a list of storages."},
    {"largest_first", pml_storages_largest_first, METH_VARARGS,
     "largest_first(storages, rows) -> (storages, tensors of those that can have no row)."},
    {"find_chains", pml_chains_find, METH_VARARGS,
     "find_chains(targets, groups, ours, later, most, limit) -> Chains: what holds the targets, from roots on."},
    {"after_fork_child", pml_fork_after_in_child, METH_NOARGS, "Tracing off, in the child of a fork."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type ? PyModule_AddType(module, *type) : -1;
}

static int add_other_types(PyObject *module)
{
    int (*const add[])(PyObject *) = {
        pml_growth_figures_add_types, pml_snapshot_add_types,      pml_saved_figures_add_types,
        pml_holders_type_add_types,   pml_peak_window_add_types,   pml_devices_add_types,
        pml_storages_add_types,       pml_snapshot_data_add_types, pml_chains_add_types,
    };
    for (size_t i = 0; i < sizeof add / sizeof *add; i++)
        if (add[i](module) < 0)
            return -1;
    return 0;
}

static int execute(PyObject *module)
{
    struct pml_state *state = pml_state_of(module);
    if (add_type(module, &pml_hook_spec, &state->hook_type) < 0 ||
        add_type(module, &pml_entry_spec, &state->entry_type) < 0 ||
        add_type(module, &pml_tracer_spec, &state->tracer_type) < 0 ||
        add_type(module, &pml_with_blocks_switch_spec, &state->switch_type) < 0 ||
        add_type(module, &pml_with_blocks_window_spec, &state->window_block_type) < 0 ||
        add_type(module, &pml_peak_window_spec, &state->peak_window_type) < 0 ||
        add_type(module, &pml_holders_type_spec, &state->holders_type) < 0 ||
        add_type(module, &pml_storage_type_spec, &state->storage_type) < 0)
        return -1;
    if (add_other_types(module) < 0 || pml_state_begin(module) < 0 || pml_monitoring_tool_begin(module) < 0)
        return -1;
    pml_fork_register();
    return PyModule_AddIntConstant(module, "MAX_DEVICES", PML_MAX_DEVICES);
}

static void release(void *module)
{
    pml_state_clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    PML_ONE_INTERPRETER,
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "The engine: allocator events, the trace hook, and line counters.",
    .m_size = sizeof(struct pml_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = pml_state_traverse,
    .m_clear = pml_state_clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
