/* Around a fork all locks are held, so that the child's copies are whole; afterwards the child traces nothing. */
#ifndef PML_FORK_H
#define PML_FORK_H

#include "cpython/compat.h"

/* Take and release all locks around each fork of the process, from now on. Needs the GIL. */
void pml_fork_register(void);
/* In the child: tracing is off, and all counters are zero. Called by Python. */
PyObject *pml_fork_after_in_child(PyObject *module, PyObject *unused);

#endif
