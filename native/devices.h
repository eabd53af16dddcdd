/* The target device, what devices hold, and what they held before they were followed. Needs the GIL; called by Python.
 */
#ifndef PML_DEVICES_H
#define PML_DEVICES_H

#include "cpython/compat.h"

int pml_devices_add_types(PyObject *module);

PyObject *pml_devices_set_target(PyObject *module, PyObject *device);
PyObject *pml_devices_install_events(PyObject *module, PyObject *unused);
PyObject *pml_devices_events_displaced(PyObject *module, PyObject *unused);
PyObject *pml_devices_forget_blocks(PyObject *module, PyObject *unused);
PyObject *pml_devices_seed_cpu(PyObject *module, PyObject *args);
PyObject *pml_devices_seed_device(PyObject *module, PyObject *args);
PyObject *pml_devices_levels(PyObject *module, PyObject *device);
PyObject *pml_devices_used(PyObject *module, PyObject *unused);

#endif
