/* Devices, for Python (see devices.h). */
#include "devices.h"

#include "cpython/arguments.h"
#include "cpython/named_tuples.h"
#include "cpython/state.h"
#include "events/allocator_events.h"
#include "frames/segment.h"
#include "holders/ledger.h"
#include "trace/statistics.h"

PyObject *pml_devices_set_target(PyObject *module, PyObject *device)
{
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    pml_segment_target_device = slot;
    Py_RETURN_NONE;
}

PyObject *pml_devices_install_events(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(pml_allocator_events_install());
}

PyObject *pml_devices_events_displaced(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(pml_allocator_events_displaced());
}

PyObject *pml_devices_forget_blocks(PyObject *module, PyObject *unused)
{
    pml_allocator_events_forget_blocks();
    Py_RETURN_NONE;
}

PyObject *pml_devices_seed_cpu(PyObject *module, PyObject *args)
{
    unsigned long long pointer;
    long long size;
    if (!PyArg_ParseTuple(args, "KL:seed_cpu", &pointer, &size))
        return NULL;
    return PyBool_FromLong(pml_allocator_events_seed_cpu((void *)(uintptr_t)pointer, size));
}

PyObject *pml_devices_seed_device(PyObject *module, PyObject *args)
{
    PyObject *device;
    long long level[PML_METRICS];
    if (!PyArg_ParseTuple(args, "OLLL:seed_device", &device, &level[PML_ACTIVE], &level[PML_ALLOCATED],
                          &level[PML_RESERVED]))
        return NULL;
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    bool fresh = !pml_meter_used(slot);
    for (int m = 0; fresh && m < PML_METRICS; m++)
        pml_ledger_adjust(slot, m, level[m]);
    return PyBool_FromLong(fresh);
}

static PyStructSequence_Field levels_fields[] = {
    {"active_bytes", "held by tensors, or waiting for streams"},
    {"allocated_bytes", "held by tensors"},
    {"reserved_bytes", "taken from the device"},
    {"gross_bytes", "allocated so far"},
    {"allocations", "their number"},
    {NULL, NULL},
};
static struct pml_named_tuple levels_kind = PML_NAMED_TUPLE("DeviceLevels", "What a device holds now.", levels_fields);

int pml_devices_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &levels_kind);
}

PyObject *pml_devices_levels(PyObject *module, PyObject *device)
{
    int slot = pml_arguments_slot(device);
    if (slot < 0)
        return NULL;
    struct pml_levels now;
    pml_statistics_sync(pml_state_of(module), false);
    pml_meter_read(slot, &now);
    return pml_named_tuples_build(&levels_kind, "(LLLLL)", (long long)now.level[PML_ACTIVE],
                                  (long long)now.level[PML_ALLOCATED], (long long)now.level[PML_RESERVED],
                                  (long long)now.gross, (long long)now.count);
}

PyObject *pml_devices_used(PyObject *module, PyObject *unused)
{
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
