/* Who holds what: live bytes of each device by owner. The pictures that are taken of them: active_pictures.h.
 *
 * Threads: one lock a device, below the allocator's lock; while it is held only later locks are taken
 * (docs/threads.md) and no foreign function is called but the C library's memory functions. Events come on any thread,
 * with or without the GIL. CUDA's come under the allocator's lock; but statistics correct a device's figures without
 * it, and CPU events overlap: hence a lock of our own.
 */
#ifndef PML_LEDGER_H
#define PML_LEDGER_H

#include "holders/active_pictures.h"

/* True if no profiler records and no block has an owner: events need not tell. */
bool pml_ledger_idle(void);

/* Who locks a device sees all that was reported of it: what waited is counted first (report_queue.h). */
void pml_ledger_lock(int device);
void pml_ledger_unlock(int device);
/* The same for all devices, for who reads the meter. */
void pml_ledger_catch_up(void);
/* And their peaks since the last time go to every open window (meter.h). Needs the GIL. */
void pml_ledger_fold(void);

/* An accelerator's allocator reports, with its own lock held. */
void pml_ledger_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved);

/* Events, with the device locked: a block, and the device's value after it (tensor bytes; on accelerators active
 * bytes). */
void pml_ledger_allocated(int device, const void *pointer, int64_t size, int64_t value);
void pml_ledger_freed(int device, const void *pointer, int64_t value);
void pml_ledger_event_done(const void *event);

/* An owner's line begins: its live bytes on a device; -1 where blocks are not followed. Needs the GIL, but no lock. */
int64_t pml_ledger_begin_line(int device, const struct pml_owner *owner);
/* The same of a line, whoever called it, and what went since it last began because profiled functions ended. Needs the
 * GIL. */
void pml_ledger_of_line(int device, const struct pml_code *code, int line, int64_t *live, int64_t *ended);
/* True from a profiled function's return to the next event of its thread: its variables go. Needs the GIL. */
void pml_ledger_set_ending(bool now);

/* Values that change without a block: locks the device, tells the meter, then the pictures. */
void pml_ledger_adjust(int device, enum pml_metric metric, int64_t value);
/* Pending bytes are settled by the allocator's statistics. Locks the device. */
void pml_ledger_correct_pending(int device, int64_t pending);
/* Accelerators are measured by events or not: what was followed is dropped. */
void pml_ledger_follow_accelerators(bool follow);

/* A picture's function begins while no other one runs: what the devices hold then is a value of the picture's. */
void pml_ledger_observe_now(struct pml_peak_picture *picture);

/* Around a fork. */
void pml_ledger_lock_all(void);
void pml_ledger_unlock_all(void);
/* Forget all live blocks and pictures; for tests. */
void pml_ledger_reset(void);

#endif
