/* Around a fork (see fork.h). */
#include "fork.h"

#include <pthread.h>
#include <stdbool.h>

#include "cpython/state.h"
#include "holders/failures.h"
#include "holders/ledger.h"
#include "holders/owners.h"
#include "holders/thread_line.h"
#include "meter/cpu_blocks.h"
#include "meter/stream_pending.h"
#include "saved/saved_tables.h"
#include "trace/hook.h"
#include "types/tracer.h"

static void before_fork(void)
{
    pml_ledger_lock_all();
    pml_owners_lock();
    pml_thread_line_lock();
    pml_failures_lock();
    pml_saved_tables_lock();
    pml_cpu_blocks_lock_all();
    pml_stream_pending_lock();
}

static void after_fork(void)
{
    pml_stream_pending_unlock();
    pml_cpu_blocks_unlock_all();
    pml_failures_unlock();
    pml_thread_line_unlock();
    pml_owners_unlock();
    pml_ledger_unlock_all();
    pml_saved_tables_unlock();
}

void pml_fork_register(void)
{
    static bool registered;
    if (!registered && pthread_atfork(before_fork, after_fork, after_fork) == 0)
        registered = true;
}

PyObject *pml_fork_after_in_child(PyObject *module, PyObject *unused)
{
    struct pml_state *state = pml_state_of(module);
    state->enabled = 0;
    state->statistics.reading = false;
    pml_hook_after_fork(state);
    pml_tracer_after_fork(state);
    Py_RETURN_NONE;
}
