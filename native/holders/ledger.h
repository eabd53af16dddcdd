/* Live bytes of each device by owner. Pictures of them: active_pictures.h.
 *
 * Threads: one lock a device, below the allocator's lock; while it is held only later locks are taken
 * (docs/threads.md) and no foreign function is called but the C library's memory functions. Events come on any thread,
 * with or without the GIL. CUDA's come under the allocator's lock; but statistics correct a device's figures without
 * it, and CPU events overlap: hence a lock of our own.
 */
#ifndef PML_LEDGER_H
#define PML_LEDGER_H

#include "holders/active_pictures.h"

/* True if no profiler records and no block has an owner: events need not be counted by owner. */
bool pml_ledger_idle(void);

void pml_ledger_lock(int device);
void pml_ledger_unlock(int device);
/* Folds the peaks since the last fold into every open window (window.h). Needs the GIL. */
void pml_ledger_fold(void);

/* An accelerator's allocator reports, with its own lock held. */
void pml_ledger_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved);

/* Events, with the device locked: a block, and the device's value after it (tensor bytes; on accelerators active
 * bytes). */
void pml_ledger_allocated(int device, const void *pointer, int64_t size, int64_t value);
void pml_ledger_freed(int device, const void *pointer, int64_t value);
void pml_ledger_event_done(const void *event);

/* A line begins, given by the first of its owners; what is older than `since` does not count. `live`: what it holds on
 * a device, -1 where it never took memory or blocks are not followed; `old`: what of that it made before its last run.
 * What autograd's threads made for it is among both. Needs the GIL, but no lock. */
void pml_ledger_begin_line(int device, struct pml_owner *owner, uint64_t since, int64_t *live, int64_t *old);
/* What a line holds on a device, whoever called it. `end`: with what it lost since it last began only because functions
 * ended, or after the last profiled function did. Needs the GIL. */
void pml_ledger_of_line(int device, const struct pml_code *code, int line, int64_t *live, int64_t *end);

enum pml_phase {
    PML_RUNNING,
    PML_ENDING,    /* from a function's return to the next event of its thread: its variables go */
    PML_UNWATCHED, /* no thread has a hook */
};
/* Asked whether the calling thread's PML_ENDING goes on, where no event ends it. Called with locks held. */
void pml_ledger_ask_if_ending(bool (*ask)(void));
/* What the calling thread does from now on, or all of them. Needs the GIL. */
void pml_ledger_set_phase(enum pml_phase now);

/* A level that changes without a block: locks the device, and updates the meter, then the pictures. */
void pml_ledger_adjust(int device, enum pml_metric metric, int64_t value);
/* Corrects pending bytes by the allocator's statistics. Locks the device. */
void pml_ledger_correct_pending(int device, int64_t pending);
/* Accelerators are measured by events or not: what was followed is dropped. */
void pml_ledger_follow_accelerators(bool follow);

/* No block of any device is known any more. */
void pml_ledger_forget_blocks(void);

/* A picture's function begins while no other one runs: what the devices hold then is a value of the picture's. */
void pml_ledger_observe_now(struct pml_peak_picture *picture);

/* Around a fork. */
void pml_ledger_lock_all(void);
void pml_ledger_unlock_all(void);
/* Forget all live blocks and pictures; for tests. */
void pml_ledger_reset(void);

#endif
