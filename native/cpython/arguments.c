/* Arguments (see arguments.h). */
#include "cpython/arguments.h"

#include "base/limits.h"

int pml_arguments_slot(PyObject *object)
{
    long slot = PyLong_AsLong(object);
    if (slot >= 0 && slot < PML_MAX_DEVICES)
        return (int)slot;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "device slot %ld is not in 0 to %d", slot, PML_MAX_DEVICES - 1);
    return -1;
}
