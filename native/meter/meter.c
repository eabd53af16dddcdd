/* The meter (see meter.h): per device current values, running peaks, and the list of open windows.
 *
 * Each device keeps `top`, the highest level since the last fold. A fold takes it, puts the present level in its
 * place, and raises the running maximum of every linked window. An event that lands while a fold runs is either in
 * the value taken or in `top` afterwards, never lost.
 */
#include "meter/meter.h"

#include <string.h>

struct pml_meter pml_meter = {
    .devices = 1,
    .windows = {.next = &pml_meter.windows, .prev = &pml_meter.windows},
};

static void raise_to(_Atomic int64_t *top, int64_t value)
{
    int64_t seen = atomic_load_explicit(top, memory_order_relaxed);
    while (seen < value &&
           !atomic_compare_exchange_weak_explicit(top, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void pml_meter_expect(int device)
{
    int devices = pml_meter_devices();
    while (devices <= device && !atomic_compare_exchange_weak(&pml_meter.devices, &devices, device + 1)) {
    }
}

PML_COLD static void begin_use(int device)
{
    pml_meter_expect(device);
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

static void tick(int device, int events)
{
    struct pml_device *dev = &pml_meter.device[device];
    uint64_t ticks = atomic_load_explicit(&dev->ticks, memory_order_relaxed);
    use(device);
    atomic_store_explicit(&dev->ticks, ticks + (unsigned)events, memory_order_release);
}

PML_HOT void pml_meter_add(int device, const struct pml_meter_events *sum)
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++)
        set_level(dev, m, sum->level[m], sum->highest[m]);
    pml_numbers_add_unshared(&dev->gross, sum->gross);
    pml_numbers_add_unshared(&dev->count, sum->count);
    tick(device, sum->events);
}

void pml_meter_set(int device, int64_t size, const int64_t totals[PML_METRICS])
{
    struct pml_meter_events one = {.gross = size > 0 ? size : 0, .count = size > 0, .events = 1};
    memcpy(one.level, totals, sizeof one.level);
    memcpy(one.highest, totals, sizeof one.highest);
    pml_meter_add(device, &one);
}

void pml_meter_adjust(int device, enum pml_metric metric, int64_t value)
{
    set_level(&pml_meter.device[device], metric, value, value);
    tick(device, 1);
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
    tick(device, 1);
}

void pml_meter_read(int device, struct pml_levels *levels)
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++)
        levels->level[m] = atomic_load_explicit(&dev->level[m], memory_order_relaxed);
    levels->gross = atomic_load_explicit(&dev->gross, memory_order_relaxed);
    levels->count = atomic_load_explicit(&dev->count, memory_order_relaxed);
}

/* A device's ticks are read before its levels: what comes in between is found later, at the latest. */
static uint64_t ticks_of(int device)
{
    return atomic_load_explicit(&pml_meter.device[device].ticks, memory_order_acquire);
}

/* Events may come meanwhile. */
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

/* Devices that appeared after the window began held nothing then. */
PML_COLD static void cover_more(struct pml_window *window, int devices)
{
    while (window->devices < devices)
        window->span[window->devices++] = (struct pml_span){.ticks = 0};
}

static inline void cover_devices(struct pml_window *window, int devices)
{
    if (window->devices < devices)
        cover_more(window, devices);
}

static inline void raise_windows(int device, int64_t active, int64_t allocated, int64_t reserved)
{
    for (struct pml_window *w = pml_meter.windows.next; w != &pml_meter.windows; w = w->next) {
        cover_devices(w, device + 1);
        int64_t *peak = w->span[device].peak;
        peak[PML_ACTIVE] = pml_numbers_max(peak[PML_ACTIVE], active);
        peak[PML_ALLOCATED] = pml_numbers_max(peak[PML_ALLOCATED], allocated);
        peak[PML_RESERVED] = pml_numbers_max(peak[PML_RESERVED], reserved);
    }
}

__attribute__((noinline)) static void fold_cpu(void)
{
    struct pml_device *dev = &pml_meter.device[PML_CPU];
    raise_windows(PML_CPU, take_shared_top(dev, PML_ACTIVE), take_shared_top(dev, PML_ALLOCATED),
                  take_shared_top(dev, PML_RESERVED));
}

static inline int64_t take_top(struct pml_device *dev, int metric)
{
    int64_t level = atomic_load_explicit(&dev->level[metric], memory_order_relaxed);
    int64_t peak = pml_numbers_max(atomic_load_explicit(&dev->top[metric], memory_order_relaxed), level);
    atomic_store_explicit(&dev->top[metric], level, memory_order_relaxed);
    return peak;
}

PML_HOT void pml_window_fold_device(int device)
{
    struct pml_device *dev = &pml_meter.device[device];
    uint64_t ticks = ticks_of(device);
    if (ticks == dev->folded)
        return;
    dev->folded = ticks;
    if (device == PML_CPU)
        fold_cpu();
    else
        raise_windows(device, take_top(dev, PML_ACTIVE), take_top(dev, PML_ALLOCATED), take_top(dev, PML_RESERVED));
}

void pml_window_fold_columns(int device)
{
    for (struct pml_window *w = pml_meter.windows.next; w != &pml_meter.windows; w = w->next)
        pml_stat_columns_raise(&w->columns, device);
}

void pml_window_link(struct pml_window *window)
{
    struct pml_window *head = &pml_meter.windows;
    window->next = head->next;
    window->prev = head;
    head->next->prev = window;
    head->next = window;
}

void pml_window_unlink(struct pml_window *window)
{
    window->prev->next = window->next;
    window->next->prev = window->prev;
    window->next = window->prev = window;
}

static void start_at(struct pml_span *span, const struct pml_levels *levels)
{
    for (int m = 0; m < PML_METRICS; m++)
        span->start.level[m] = span->peak[m] = levels->level[m];
    span->start.gross = levels->gross;
    span->start.count = levels->count;
    span->ticks = span->end_ticks;
}

void pml_window_restart(struct pml_window *window)
{
    uint64_t ticks = pml_meter_invalidations();
    window->devices = pml_meter_devices();
    for (int d = 0; d < window->devices; d++) {
        struct pml_span *span = &window->span[d];
        ticks += span->end_ticks = ticks_of(d);
        pml_meter_read(d, &span->end);
        start_at(span, &span->end);
    }
    window->ticks = window->end_ticks = ticks;
}

PML_HOT void pml_window_read_end(struct pml_window *window)
{
    uint64_t ticks = pml_meter_invalidations();
    cover_devices(window, pml_meter_devices());
    for (int d = 0; d < window->devices; d++) {
        struct pml_span *span = &window->span[d];
        uint64_t now = ticks_of(d);
        ticks += now;
        if (now != span->ticks) {
            span->end_ticks = now;
            pml_meter_read(d, &span->end);
        }
    }
    window->end_ticks = ticks;
}

PML_HOT void pml_window_go_on(struct pml_window *window)
{
    window->ticks = window->end_ticks;
    for (int d = 0; d < window->devices; d++)
        if (window->span[d].ticks != window->span[d].end_ticks)
            start_at(&window->span[d], &window->span[d].end);
}

PML_HOT void pml_window_absorb(struct pml_window *outer, const struct pml_window *inner)
{
    cover_devices(outer, inner->devices);
    for (int d = 0; d < inner->devices; d++)
        for (int m = 0; m < PML_METRICS; m++)
            if (outer->span[d].peak[m] < inner->span[d].peak[m])
                outer->span[d].peak[m] = inner->span[d].peak[m];
    if (outer->columns.active && inner->columns.active)
        pml_stat_columns_absorb(&outer->columns, &inner->columns);
}

void pml_window_forget_all(void)
{
    while (pml_meter.windows.next != &pml_meter.windows)
        pml_window_unlink(pml_meter.windows.next);
}
