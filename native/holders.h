/* Who holds what: live bytes of each device by owner. The pictures that are taken of them: gallery.h.
 *
 * Threads: one lock a device, below the allocator's lock; while it is held only later locks are taken (docs/threads.md) and
 * no foreign function is called but the C library's memory functions. Events come
 * on any thread, with or without the GIL. CUDA's come under the allocator's lock; but statistics correct a device's
 * figures without it, and CPU events overlap: hence a lock of our own.
 */
#ifndef PML_HOLDERS_H
#define PML_HOLDERS_H

#include "gallery.h"

/* True if no profiler records and no block has an owner: events need not tell. */
bool pml_holders_idle(void);

/* Who locks a device sees all that was reported of it: what waited is counted first (backlog.h). */
void pml_holders_lock(int device);
void pml_holders_unlock(int device);
/* The same for all devices, for who reads the meter. */
void pml_holders_catch_up(void);
/* And their peaks since the last time go to every open window (meter.h). Needs the GIL. */
void pml_holders_fold(void);

/* An accelerator's allocator reports, with its own lock held. */
void pml_holders_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved);

/* Events, with the device locked: a block, and the device's value after it (tensor bytes; on accelerators active
 * bytes). */
void pml_holders_allocated(int device, const void *pointer, int64_t size, int64_t value);
void pml_holders_freed(int device, const void *pointer, int64_t value);
void pml_holders_event_done(const void *event);

/* An owner's line begins: its live bytes on a device; -1 where blocks are not followed. Needs the GIL, but no lock. */
int64_t pml_holders_begin(int device, const struct pml_owner *owner);
/* The same of a line, whoever called it, and what went since it last began because profiled functions ended. Needs the
 * GIL. */
void pml_holders_of_line(int device, const struct pml_code *code, int line, int64_t *live, int64_t *ended);
/* True from a profiled function's return to the next event of its thread: its variables go. Needs the GIL. */
void pml_holders_ending(bool now);

/* Values that change without a block: locks the device, tells the meter, then the pictures. */
void pml_holders_adjust(int device, enum pml_metric metric, int64_t value);
/* Pending bytes are settled by the allocator's statistics. Locks the device. */
void pml_holders_settle(int device, int64_t pending);
/* Accelerators are measured by events or not: what was followed is dropped. */
void pml_holders_follow_accelerators(bool follow);

/* A picture's function begins while no other one runs: what the devices hold then is a value of the picture's. */
void pml_holders_see_now(struct pml_picture *picture);

/* A code object is gone. Needs the GIL. */
void pml_holders_forget_code(struct pml_code *code);

/* Around a fork. */
void pml_holders_lock_all(void);
void pml_holders_unlock_all(void);
/* Forget all live blocks and pictures; for tests. */
void pml_holders_reset(void);

#endif
