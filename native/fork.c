/* Around a fork (see fork.h). */
#include "fork.h"

#include <pthread.h>
#include <stdbool.h>

#include "cpython/state.h"
#include "saved/all_locks.h"
#include "trace/hook.h"
#include "types/tracer.h"

void pml_fork_register(void)
{
    static bool registered;
    if (!registered && pthread_atfork(pml_all_locks_take, pml_all_locks_give, pml_all_locks_give) == 0)
        registered = true;
}

PyObject *pml_fork_after_in_child(PyObject *module, PyObject *unused)
{
    struct pml_state *state = pml_state_of(module);
    state->enabled = 0;
    state->forks++;
    state->statistics.reading = false;
    pml_hook_after_fork(state);
    pml_tracer_after_fork(state);
    Py_RETURN_NONE;
}
