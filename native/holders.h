/* Who holds what: live bytes of each device by owner, and the pictures that are taken of them.
 *
 * Threads: one mutex a device, a leaf below the allocator's lock; while it is held only leaf mutexes are taken (owners,
 * places, pending, blocks, failures) and no foreign function is called but the C library's memory functions. Events come
 * on any thread, with or without the GIL. CUDA's come under the allocator's lock; but statistics correct a device's
 * figures without it, and CPU events overlap: hence a mutex of our own.
 */
#ifndef PML_HOLDERS_H
#define PML_HOLDERS_H

#include "picture.h"

/* True if no profiler records and no block has an owner: events need not tell. */
bool pml_holders_idle(void);

/* Who locks a device sees all that was reported of it: what waited is counted first (backlog.h). */
void pml_holders_lock(int device);
void pml_holders_unlock(int device);
/* The same for all devices, for who reads the meter. */
void pml_holders_catch_up(void);

/* An accelerator's allocator reports, with its own lock held. */
void pml_holders_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved);

/* Events, with the device locked: a block, and the device's value after it (tensor bytes; on accelerators active
 * bytes). */
void pml_holders_allocated(int device, const void *pointer, int64_t size, int64_t value);
void pml_holders_freed(int device, const void *pointer, int64_t value);
void pml_holders_event_done(const void *event);

/* An owner's line begins: its live bytes on a device; -1 where blocks are not followed. */
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

/* Pictures, with the GIL. A picture is active while one of its recorders records. */
void pml_picture_start(struct pml_picture *picture);
void pml_picture_stop(struct pml_picture *picture);
void pml_picture_clear(struct pml_picture *picture);
/* A frame of the group `bit`s begins or ends to count. */
void pml_pictures_open(uint64_t groups);
void pml_pictures_close(uint64_t groups);
/* Memory ran out for something that these groups needed. */
void pml_pictures_fail(uint64_t groups);

/* A copy of what the device's picture shows; false where there is none, or memory runs out (then `failed`). The caller
 * frees the holders. */
bool pml_picture_copy(struct pml_picture *picture, int device, struct pml_peak *copy);

/* Live bytes by line, now. The device is locked. */
bool pml_holders_now(int device, const struct pml_picture *picture, struct pml_holder_list *list);
/* Nobody will ask for the bytes of the owner of this index again. All devices are locked. */
bool pml_holders_unused(int index);
uint64_t pml_holders_groups_open(void);
struct pml_picture *pml_picture_of_group(int group);

/* A code object is gone. Needs the GIL. */
void pml_holders_forget_code(struct pml_code *code);

/* Around a fork. */
void pml_holders_lock_all(void);
void pml_holders_unlock_all(void);
/* Forget all live blocks and pictures; for tests. */
void pml_holders_reset(void);

#endif
