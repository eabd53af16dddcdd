/* Events with made-up bytes, for tests (see testing.h). */
#include "testing.h"

#include "cpython/arguments.h"
#include "holders/failures.h"
#include "holders/ledger.h"

PyObject *pml_testing_inject_event(PyObject *module, PyObject *args)
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

PyObject *pml_testing_inject_failure(PyObject *module, PyObject *args)
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
