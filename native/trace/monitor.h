/* Events of sys.monitoring (Python 3.12 and later): those of the profiled code objects, on every thread. Other code
 * runs as without them. Needs the GIL.
 */
#ifndef PML_MONITOR_H
#define PML_MONITOR_H

#include "cpython/state.h"

/* Which profilers of this code object record has changed: watch it, or no longer. False if that failed. */
bool pml_monitor_update(struct pml_state *state, PyObject *code);

#endif
