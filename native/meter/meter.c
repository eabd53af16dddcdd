/* The meter (see meter.h): per device current values, and `top`, the highest level since it was last taken.
 *
 * Taking it replaces it by the present level. A concurrent event is either in the value taken or in `top` afterwards,
 * never lost.
 */
#include "meter/meter.h"

struct pml_meter pml_meter = {.devices = 1};

static void raise_to(_Atomic int64_t *top, int64_t value)
{
    int64_t seen = atomic_load_explicit(top, memory_order_relaxed);
    while (seen < value &&
           !atomic_compare_exchange_weak_explicit(top, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void expect(int device)
{
    int devices = pml_meter_devices();
    while (devices <= device && !atomic_compare_exchange_weak(&pml_meter.devices, &devices, device + 1)) {
    }
}

static void begin_use(int device)
{
    expect(device);
    atomic_store(&pml_meter.device[device].used, true);
}

static void use(int device)
{
    if (!pml_meter_used(device))
        begin_use(device);
}

int64_t pml_meter_move(int device, int64_t size)
{
    struct pml_device *dev = &pml_meter.device[device];
    int64_t level = atomic_fetch_add_explicit(&dev->level[PML_ALLOCATED], size, memory_order_relaxed) + size;
    if (size > 0) {
        raise_to(&dev->top[PML_ALLOCATED], level);
        atomic_fetch_add_explicit(&dev->gross, size, memory_order_relaxed);
        atomic_fetch_add_explicit(&dev->count, 1, memory_order_relaxed);
    }
    use(device);
    atomic_fetch_add_explicit(&dev->ticks, 1, memory_order_release);
    return level;
}

/* ---- accelerators: one thread at a time, no bus lock is needed ---- */

static void set_level(struct pml_device *dev, int metric, int64_t level, int64_t highest)
{
    atomic_store_explicit(&dev->level[metric], level, memory_order_relaxed);
    if (atomic_load_explicit(&dev->top[metric], memory_order_relaxed) < highest)
        atomic_store_explicit(&dev->top[metric], highest, memory_order_relaxed);
}

static void tick(int device)
{
    struct pml_device *dev = &pml_meter.device[device];
    uint64_t ticks = atomic_load_explicit(&dev->ticks, memory_order_relaxed);
    use(device);
    atomic_store_explicit(&dev->ticks, ticks + 1, memory_order_release);
}

void pml_meter_set(int device, int64_t size, const int64_t totals[PML_METRICS])
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++)
        set_level(dev, m, totals[m], totals[m]);
    if (size > 0) {
        pml_numbers_add_unshared(&dev->gross, size);
        pml_numbers_add_unshared(&dev->count, 1);
    }
    tick(device);
}

void pml_meter_adjust(int device, enum pml_metric metric, int64_t value)
{
    set_level(&pml_meter.device[device], metric, value, value);
    tick(device);
}

void pml_meter_invalidate(void)
{
    atomic_fetch_add_explicit(&pml_meter.invalidations, 1, memory_order_release);
}

void pml_meter_observe(int device, const struct pml_levels *now, const int64_t peak[PML_METRICS])
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++)
        set_level(dev, m, now->level[m], peak[m]);
    atomic_store_explicit(&dev->gross, now->gross, memory_order_relaxed);
    atomic_store_explicit(&dev->count, now->count, memory_order_relaxed);
    tick(device);
}

void pml_meter_read(int device, struct pml_levels *levels)
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++)
        levels->level[m] = atomic_load_explicit(&dev->level[m], memory_order_relaxed);
    levels->gross = atomic_load_explicit(&dev->gross, memory_order_relaxed);
    levels->count = atomic_load_explicit(&dev->count, memory_order_relaxed);
}

/* Events may be concurrent. */
static int64_t take_shared_top(struct pml_device *dev, int metric)
{
    int64_t peak = atomic_load_explicit(&dev->top[metric], memory_order_relaxed);
    int64_t level;
    do {
        level = atomic_load_explicit(&dev->level[metric], memory_order_relaxed);
        if (peak == level)
            break;
    } while (!atomic_compare_exchange_weak_explicit(&dev->top[metric], &peak, level, memory_order_relaxed,
                                                    memory_order_relaxed));
    return pml_numbers_max(peak, level);
}

static inline int64_t take_top(struct pml_device *dev, int metric)
{
    int64_t level = atomic_load_explicit(&dev->level[metric], memory_order_relaxed);
    int64_t peak = pml_numbers_max(atomic_load_explicit(&dev->top[metric], memory_order_relaxed), level);
    atomic_store_explicit(&dev->top[metric], level, memory_order_relaxed);
    return peak;
}

/* A device's ticks are read before its levels: what comes in between is found later, at the latest. */
bool pml_meter_take_tops(int device, int64_t top[PML_METRICS])
{
    struct pml_device *dev = &pml_meter.device[device];
    uint64_t ticks = pml_meter_ticks_of(device);
    if (ticks == dev->folded)
        return false;
    dev->folded = ticks;
    for (int m = 0; m < PML_METRICS; m++)
        top[m] = device == PML_CPU ? take_shared_top(dev, m) : take_top(dev, m);
    return true;
}
