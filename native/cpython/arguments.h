/* Arguments of the functions that Python calls. Needs the GIL. */
#ifndef PML_ARGUMENTS_H
#define PML_ARGUMENTS_H

#include "cpython/compat.h"

/* A device slot; -1 with an exception set when it is out of range. */
int pml_arguments_slot(PyObject *object);

#endif
