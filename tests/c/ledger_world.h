/* Two devices, and profilers that take pictures of them: what the events, the hook and the tracer do around the units
 * "owners", "picture", "holders" and "failures". For programs that include it once.
 */
#ifndef PML_HOLDERS_WORLD_H
#define PML_HOLDERS_WORLD_H

#include "holders/charge.h"
#include "holders/failures.h"
#include "holders/picture_recording.h"
#include "holders/thread_line.h"
#include "segment_world.h"

static struct pml_peak_picture picture[RECORDERS];
static struct pml_peak_picture *taken[RECORDERS]; /* by each recorder */
static int64_t total[PML_MAX_DEVICES];            /* what accelerators' allocators hold */

/* A profiler of its own picture, or of another profiler's. */
static inline void begin(int r, struct pml_peak_picture *shared)
{
    taken[r] = shared ? shared : &picture[r];
    pml_picture_recording_start(taken[r], &recorder[r]);
    start(r);
    pml_codes_regroup();
}

static inline void recount(struct pml_frame_stack *stack)
{
    for (int i = 0; i < stack->depth; i++)
        pml_segment_recount(stack->frame[i]);
}

static inline void end(int r, struct pml_frame_stack *stack)
{
    stop(r, stack, 1);
    pml_picture_recording_stop(taken[r], &recorder[r]);
    pml_codes_regroup();
    recount(stack);
}

static inline void forget_figures(int r, struct pml_frame_stack *stack)
{
    recorder[r].started = pml_moment_next();
    pml_picture_recording_clear(taken[r]);
    pml_codes_regroup();
    recount(stack);
}

static inline void fresh_holders(void)
{
    fresh(false);
    memset(total, 0, sizeof total);
    for (int r = 0; r < RECORDERS; r++)
        picture[r] = (struct pml_peak_picture){.group = -1};
}

static inline void clear_holders(void)
{
    unsubscribe_all();
    for (int r = 0; r < RECORDERS; r++)
        pml_picture_recording_clear(&picture[r]);
    pml_ledger_reset();
}

/* Everything ends: frames, the first profilers, and what they left. */
static inline void finish(int profilers, struct pml_frame_stack *stack)
{
    pml_frame_stack_cut(stack, 0);
    for (int r = 0; r < profilers; r++)
        end(r, stack);
    pml_frame_stack_free(stack);
    clear_holders();
}

/* ---- events; a pointer is a small number ---- */

static inline int64_t value_of(int device)
{
    struct pml_levels now;
    pml_meter_read(device, &now);
    return device == PML_CPU ? now.level[PML_ALLOCATED] : total[device];
}

/* An accelerator's allocator tells its totals, with a lock of its own held; on the CPU the meter adds up. */
static inline void event(int device, int pointer, int64_t size)
{
    const void *block = (const void *)(uintptr_t)(pointer + 1);
    if (device != PML_CPU) {
        total[device] += size;
        pml_ledger_reported(device, block, size, total[device], 1 << 30);
        return;
    }
    pml_ledger_lock(device);
    int64_t value = pml_meter_move(device, size);
    if (size > 0)
        pml_ledger_allocated(device, block, size, value);
    else
        pml_ledger_freed(device, block, value);
    pml_ledger_unlock(device);
}

static inline void allocate(int device, int pointer, int64_t size)
{
    event(device, pointer, size);
}

static inline void release(int device, int pointer, int64_t size)
{
    event(device, pointer, -size);
}

/* ---- what a picture shows ---- */

static inline int64_t peak_of(int r, int device)
{
    struct pml_peak copy;
    if (!pml_picture_recording_copy(taken[r], device, &copy))
        return -1;
    free(copy.list.holder);
    return copy.peak;
}

static inline int64_t owner_bytes(const struct pml_holder_list *list, const void *code, int line,
                                  enum pml_owner_kind kind)
{
    int64_t bytes = 0;
    for (int i = 0; i < list->count; i++) {
        const struct pml_holder *holder = &list->holder[i];
        if (holder->code == code && holder->line == line && holder->kind == kind)
            bytes += holder->bytes;
    }
    return bytes;
}

/* Bytes that a line of code object `c` holds at the peak. */
static inline int64_t owner_bytes_of(int r, int device, int c, int line)
{
    struct pml_peak copy;
    if (!pml_picture_recording_copy(taken[r], device, &copy))
        return -1;
    int64_t bytes = owner_bytes(&copy.list, &key[c], line, PML_OWNER_LINE);
    free(copy.list.holder);
    return bytes;
}

static inline int64_t held_in_all(int r, int device)
{
    struct pml_peak copy;
    int64_t bytes = 0;
    if (!pml_picture_recording_copy(taken[r], device, &copy))
        return -1;
    for (int i = 0; i < copy.list.count; i++)
        bytes += copy.list.holder[i].bytes;
    free(copy.list.holder);
    return bytes;
}

#endif
