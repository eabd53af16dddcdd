/* Freed blocks that wait for another stream (`record_stream`): what sets active bytes apart from allocated bytes.
 *
 * The caching allocator records CUDA events inside a free, before it reports the free; it queries them at later
 * allocations, and when the last one is done the block stops being active. No report announces that, so the event calls
 * themselves are followed. A CUDA event recorded by anyone else looks alike until the next allocation: the figures are
 * therefore checked against the allocator's statistics (statistics.c) wherever `pml_stream_pending_unsure`.
 *
 * Threads: any, with or without the GIL; one mutex, a leaf.
 */
#ifndef PML_STREAM_PENDING_H
#define PML_STREAM_PENDING_H

#include <stdbool.h>
#include <stdint.h>

void pml_stream_pending_recorded(const void *event);
/* Whether CUDA events were recorded since the start: otherwise no block waits. */
bool pml_stream_pending_in_use(void);
/* A block that waits no more: its device (-1: none), the number that its free gave, and its bytes. */
struct pml_stream_pending_end {
    int device;
    int index;
    int64_t size;
};
struct pml_stream_pending_end pml_stream_pending_done(const void *event);
/* An allocator report on this thread: a free takes the events recorded since the last report. True if the block waits;
 * `pml_stream_pending_done` returns it at its end. `index` is the caller's: the block's owner. */
bool pml_stream_pending_freed(int device, int64_t size, int index);
void pml_stream_pending_allocated(void);

int64_t pml_stream_pending_bytes(int device);
/* True while pending bytes are not 0, or changed since `pml_stream_pending_correct`. */
bool pml_stream_pending_unsure(int device);
/* The truth, from the allocator's statistics; true if it differed from what was followed. Blocks that wait no longer
 * are passed to `released`, with the mutex held. */
typedef void pml_stream_pending_released(int device, int index, int64_t size);
bool pml_stream_pending_correct(int device, int64_t bytes, pml_stream_pending_released *released);
/* The owners' indices given for a device's blocks are no longer valid. */
void pml_stream_pending_forget_owners(int device);

void pml_stream_pending_lock(void);
void pml_stream_pending_unlock(void);

#endif
