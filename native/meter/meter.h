/* The meter: what each device's allocator holds now, and the highest since that was last asked.
 *
 * Ownership: the meter is one process-wide object.
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

#include "base/limits.h"
#include "base/numbers.h"

enum pml_metric { PML_ACTIVE, PML_ALLOCATED, PML_RESERVED, PML_METRICS };

/* One device at one moment: levels, and what was allocated so far (gross bytes, number of allocations). */
struct pml_levels {
    int64_t level[PML_METRICS];
    int64_t gross;
    int64_t count;
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
};

extern struct pml_meter pml_meter;

/* Events. `size` > 0 allocates, < 0 frees. `move` is for the CPU: relative, on any number of threads at once, allocated
 * bytes only; it gives the level after it. */
int64_t pml_meter_move(int device, int64_t size);
/* One event of an accelerator, with the totals after it. */
void pml_meter_set(int device, int64_t size, const int64_t totals[PML_METRICS]);
/* A level that changed, or was found to differ, without an allocation. */
void pml_meter_adjust(int device, enum pml_metric metric, int64_t value);
/* What a statistics reading says happened since the last one: levels now and the highest in between. */
void pml_meter_observe(int device, const struct pml_levels *now, const int64_t peak[PML_METRICS]);
/* Something happened that no level shows yet: the next reader reads the statistics. Any thread. */
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

/* The same of one device. */
static inline uint64_t pml_meter_ticks_of(int device)
{
    return atomic_load_explicit(&pml_meter.device[device].ticks, memory_order_acquire);
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

/* The device's highest levels since they were last taken; false if nothing happened. An accelerator is locked. */
bool pml_meter_take_tops(int device, int64_t top[PML_METRICS]);

#endif
