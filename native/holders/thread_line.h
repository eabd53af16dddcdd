/* Which line each thread runs now: allocations on that thread, or on autograd's threads, are charged to it.
 *
 * Threads: a thread reads its own entry without a lock, and the entries of other threads with a mutex, a leaf. An entry
 * is owned by its thread and by the stack of frames that writes to it, and is freed with the last of them.
 */
#ifndef PML_THREAD_LINE_H
#define PML_THREAD_LINE_H

#include <stdatomic.h>

#include "holders/owners.h"

struct pml_thread_line {
    struct pml_thread_line *next;
    struct pml_thread_line *prev;
    int references;
    _Atomic(struct pml_owner *) owner; /* NULL: no profiled function runs */
};

/* This thread's entry, with one more reference; NULL when memory runs out. */
struct pml_thread_line *pml_thread_line_retain(void);
void pml_thread_line_release(struct pml_thread_line *thread_line);

/* Counts the changes of what threads run. With the GIL. */
extern _Atomic uint64_t pml_thread_line_changes;

static inline void pml_thread_line_set(struct pml_thread_line *thread_line, struct pml_owner *owner)
{
    if (!thread_line || atomic_load_explicit(&thread_line->owner, memory_order_relaxed) == owner)
        return;
    uint64_t changes = atomic_load_explicit(&pml_thread_line_changes, memory_order_relaxed);
    atomic_store_explicit(&thread_line->owner, owner, memory_order_release);
    atomic_store_explicit(&pml_thread_line_changes, changes + 1, memory_order_release);
}

/* The owner of what this thread allocates: its own line; on autograd's threads the line that waits for them; or NULL. A
 * device's lock is held, so the owner is not freed. */
struct pml_owner *pml_thread_line_owner(void);

void pml_thread_line_lock(void);
void pml_thread_line_unlock(void);

#endif
