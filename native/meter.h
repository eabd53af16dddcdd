/* The meter: what each device's allocator holds now, and how high it was inside each open window.
 *
 * Ownership: the meter is one process-wide object; windows belong to whoever opened them.
 * Threads:   events (`pml_meter_move`, `pml_meter_set`, `pml_meter_adjust`) come from any thread, with or without
 *            the GIL and with an allocator's lock held; they touch atomics only. All else needs the GIL.
 *
 * A device is a slot: 0 is the CPU, 1 + i is accelerator i. Values are bytes.
 */
#ifndef PML_METER_H
#define PML_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extra.h"

#define PML_MAX_DEVICES 33
#define PML_CPU 0

enum pml_metric { PML_ACTIVE, PML_ALLOCATED, PML_RESERVED, PML_METRICS };

/* One device at one moment: levels, and what was allocated so far (gross bytes, number of allocations). */
struct pml_levels {
    int64_t level[PML_METRICS];
    int64_t gross;
    int64_t count;
};

/* One device inside one window: the highest level of each metric so far, and the levels at its start. */
struct pml_span {
    int64_t peak[PML_METRICS];
    int64_t start[PML_METRICS];
    int64_t gross;
    int64_t count;
    bool live_known;
    int64_t live; /* bytes that the line which runs held at its start (holders.h); not the meter's */
};

/* A stretch of time with its own running maximum. Linked into the list of open windows while it is the innermost
 * of its thread, or while it stands alone. */
struct pml_window {
    struct pml_window *next;
    struct pml_window *prev;
    uint64_t ticks;
    uint64_t epoch; /* which outermost profiled call it belongs to (framestack.c) */
    int devices;
    struct pml_span span[PML_MAX_DEVICES];
    struct pml_marks marks;
};

struct pml_device {
    _Atomic int64_t level[PML_METRICS];
    _Atomic int64_t top[PML_METRICS];
    _Atomic int64_t gross;
    _Atomic int64_t count;
    _Atomic bool used;
};

struct pml_meter {
    _Atomic uint64_t ticks;
    _Atomic int devices;
    uint64_t folded;
    struct pml_device device[PML_MAX_DEVICES];
    struct pml_window windows;
};

extern struct pml_meter pml_meter;

/* Events. `size` > 0 allocates, < 0 frees. `move` is for the CPU: relative, on any number of threads at once, allocated
 * bytes only; it gives the level after it. `set` is for accelerators: it carries the totals after the event, and calls for one device do not overlap
 * (they are made under the allocator's lock). */
int64_t pml_meter_move(int device, int64_t size);
/* Several accelerator events that followed each other: levels after them, the highest among them, and what they
 * allocated. */
struct pml_events {
    int64_t level[PML_METRICS];
    int64_t highest[PML_METRICS];
    int64_t gross;
    int64_t count;
    int events;
};
void pml_meter_add(int device, const struct pml_events *sum);
void pml_meter_set(int device, int64_t size, const int64_t totals[PML_METRICS]);
/* A level that changed, or was found to differ, without an allocation. */
void pml_meter_adjust(int device, enum pml_metric metric, int64_t value);
/* Something happened that no level tells of yet: the next reader looks closer. */
void pml_meter_touch(void);
/* What a statistics reading says happened since the last one: levels now and the highest in between. */
void pml_meter_observe(int device, const struct pml_levels *now, const int64_t peak[PML_METRICS]);

static inline uint64_t pml_meter_ticks(void)
{
    return atomic_load_explicit(&pml_meter.ticks, memory_order_acquire);
}

static inline int pml_meter_devices(void)
{
    return atomic_load_explicit(&pml_meter.devices, memory_order_acquire);
}

static inline bool pml_meter_used(int device)
{
    return atomic_load_explicit(&pml_meter.device[device].used, memory_order_relaxed);
}

void pml_meter_read(int device, struct pml_levels *levels);

/* Give the peaks since the last fold to every open window. Does nothing if nothing happened. */
void pml_meter_fold(void);

/* Give a statistics reading of one device to every open window that tracks extra columns. */
void pml_meter_fold_extra(int device);

/* Windows. Fold before each of these. */
void pml_window_link(struct pml_window *window);
void pml_window_unlink(struct pml_window *window);
/* Begin anew from the levels of this moment. */
void pml_window_restart(struct pml_window *window);
/* An inner window's peaks are also those of the window around it. */
void pml_window_absorb(struct pml_window *outer, const struct pml_window *inner);
/* Unlink all open windows: for the child of a fork, whose other threads are gone. They keep what they have. */
void pml_meter_forget_windows(void);

#endif
