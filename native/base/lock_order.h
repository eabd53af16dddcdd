/* The one order in which the engine's locks are taken, and a check of it: built with PML_CHECK_LOCKS, a thread that
 * takes a lock while it holds that lock or a later one is stopped there. docs/threads.md says what each lock is for.
 */
#ifndef PML_LOCK_ORDER_H
#define PML_LOCK_ORDER_H

enum pml_lock_rank {
    PML_RANK_SAVED = 1, /* blocks that autograd keeps (saved_tables.h) */
    PML_RANK_DEVICE,    /* by device (ledger.h) */
    PML_RANK_FAILURES,
    PML_RANK_PENDING,
    PML_RANK_OWNERS,
    PML_RANK_THREAD_LINE, /* the list of threads (thread_line.h) */
    PML_RANK_BLOCKS,      /* by shard (cpu_blocks.h) */
};

/* Just before a lock is taken, and after it was given back. `number`: which of the locks of this rank. */
#ifdef PML_CHECK_LOCKS
void pml_lock_order_taken(enum pml_lock_rank rank, int number);
void pml_lock_order_given(enum pml_lock_rank rank, int number);
#else
static inline void pml_lock_order_taken(enum pml_lock_rank rank, int number)
{
}

static inline void pml_lock_order_given(enum pml_lock_rank rank, int number)
{
}
#endif

#endif
