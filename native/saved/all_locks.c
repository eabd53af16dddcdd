/* All locks of the engine (see all_locks.h). */
#include "saved/all_locks.h"

#include "holders/failures.h"
#include "holders/ledger.h"
#include "holders/owners.h"
#include "holders/thread_line.h"
#include "meter/cpu_blocks.h"
#include "meter/stream_pending.h"
#include "saved/saved_tables.h"

void pml_all_locks_take(void)
{
    pml_saved_tables_lock();
    pml_ledger_lock_all();
    pml_failures_lock();
    pml_stream_pending_lock();
    pml_owners_lock();
    pml_thread_line_lock();
    pml_cpu_blocks_lock_all();
}

void pml_all_locks_give(void)
{
    pml_cpu_blocks_unlock_all();
    pml_thread_line_unlock();
    pml_owners_unlock();
    pml_stream_pending_unlock();
    pml_failures_unlock();
    pml_ledger_unlock_all();
    pml_saved_tables_unlock();
}
