/* The meter: what each device's allocator holds now, and how high it was inside each open window.
 *
 * Ownership: the meter is one process-wide object; windows belong to whoever opened them.
 * Threads:   the CPU's events (`pml_meter_move`) come from any thread, with or without the GIL. An accelerator's values
 *            change one at a time: with the device locked (ledger.h), and so it is folded. All else needs the GIL.
 *
 * A device is a slot: 0 is the CPU, 1 + i is accelerator i. Values are bytes.
 */
#ifndef PML_METER_H
#define PML_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "meter/stat_columns.h"
#include "base/hot.h"

#define PML_MAX_DEVICES 33
#define PML_CPU 0

enum pml_metric { PML_ACTIVE, PML_ALLOCATED, PML_RESERVED, PML_METRICS };

/* One device at one moment: levels, and what was allocated so far (gross bytes, number of allocations). */
struct pml_levels {
    int64_t level[PML_METRICS];
    int64_t gross;
    int64_t count;
};

/* One device inside one window. Where nothing happened since its start, its end has not been read and is the start. */
struct pml_span {
    int64_t peak[PML_METRICS]; /* the highest so far */
    struct pml_levels start;
    struct pml_levels end;
    uint64_t ticks; /* of the device, at the start */
    uint64_t end_ticks;
    int64_t live; /* bytes that the line which runs held at its start (ledger.h), or -1; not the meter's */
};

static inline const struct pml_levels *pml_window_span_end(const struct pml_span *span)
{
    return span->end_ticks == span->ticks ? &span->start : &span->end;
}

/* A stretch of time with its own running maximum. Linked into the list of open windows while it is the innermost
 * of its thread, or while it stands alone. */
struct pml_window {
    struct pml_window *next;
    struct pml_window *prev;
    uint64_t ticks; /* of all devices, at the start */
    uint64_t end_ticks;
    uint64_t epoch; /* which outermost profiled call it belongs to (frame_stack.c) */
    int devices;
    struct pml_column_values columns;
    struct pml_span span[PML_MAX_DEVICES];
};

struct pml_device {
    _Atomic int64_t level[PML_METRICS];
    _Atomic int64_t top[PML_METRICS];
    _Atomic int64_t gross;
    _Atomic int64_t count;
    _Atomic uint64_t ticks;
    uint64_t folded; /* of these ticks */
    _Atomic bool used;
};

struct pml_meter {
    _Atomic uint64_t invalidations;
    _Atomic int devices;
    struct pml_device device[PML_MAX_DEVICES];
    struct pml_window windows;
};

extern struct pml_meter pml_meter;

static inline int64_t pml_numbers_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* For a value that only one thread at a time changes: no bus lock is needed. */
static inline void pml_numbers_add_unshared(_Atomic int64_t *value, int64_t amount)
{
    int64_t now = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, now + amount, memory_order_relaxed);
}

/* Events. `size` > 0 allocates, < 0 frees. `move` is for the CPU: relative, on any number of threads at once, allocated
 * bytes only; it gives the level after it. */
int64_t pml_meter_move(int device, int64_t size);
/* Several accelerator events that followed each other: levels after them, the highest among them, and what they
 * allocated. */
struct pml_meter_events {
    int64_t level[PML_METRICS];
    int64_t highest[PML_METRICS];
    int64_t gross;
    int64_t count;
    int events;
};
void pml_meter_add(int device, const struct pml_meter_events *sum);
/* One event, with the totals after it. */
void pml_meter_set(int device, int64_t size, const int64_t totals[PML_METRICS]);
/* There will be events on the device: it is one of `pml_meter_devices`. Any thread. */
void pml_meter_expect(int device);
/* A level that changed, or was found to differ, without an allocation. */
void pml_meter_adjust(int device, enum pml_metric metric, int64_t value);
/* What a statistics reading says happened since the last one: levels now and the highest in between. */
void pml_meter_observe(int device, const struct pml_levels *now, const int64_t peak[PML_METRICS]);
/* Something happened that no level tells of yet: the next reader looks closer. Any thread. */
void pml_meter_invalidate(void);

static inline int pml_meter_devices(void)
{
    return atomic_load_explicit(&pml_meter.devices, memory_order_acquire);
}

static inline uint64_t pml_meter_invalidations(void)
{
    return atomic_load_explicit(&pml_meter.invalidations, memory_order_acquire);
}

/* Counts all that happened. The same value twice: nothing happened in between. */
static inline uint64_t pml_meter_ticks(void)
{
    uint64_t ticks = pml_meter_invalidations();
    int devices = pml_meter_devices();
    for (int d = 0; d < devices; d++)
        ticks += atomic_load_explicit(&pml_meter.device[d].ticks, memory_order_acquire);
    return ticks;
}

static inline bool pml_meter_used(int device)
{
    return atomic_load_explicit(&pml_meter.device[device].used, memory_order_relaxed);
}

void pml_meter_read(int device, struct pml_levels *levels);

/* Whether something happened on the device since it was folded. */
static inline bool pml_meter_unfolded(int device)
{
    const struct pml_device *dev = &pml_meter.device[device];
    return atomic_load_explicit(&dev->ticks, memory_order_relaxed) != dev->folded;
}

/* Give the device's peaks since its last fold to every open window. An accelerator is locked. */
void pml_window_fold_device(int device);

/* Give a statistics reading of one device to every open window that tracks extra columns. */
void pml_window_fold_columns(int device);

/* Windows. Fold before each of these. */
void pml_window_link(struct pml_window *window);
void pml_window_unlink(struct pml_window *window);
/* Begin anew from the levels of this moment. */
void pml_window_restart(struct pml_window *window);
/* Read the ends of its spans: what happens later belongs to the next window. */
void pml_window_read_end(struct pml_window *window);
/* Begin anew where it ended. */
void pml_window_go_on(struct pml_window *window);
/* An inner window's peaks are also those of the window around it. */
void pml_window_absorb(struct pml_window *outer, const struct pml_window *inner);
/* Unlink all open windows: for the child of a fork, whose other threads are gone. They keep what they have. */
void pml_window_forget_all(void);

#endif
