/* The meter (see meter.h): per device current values, running peaks, and the list of open windows.
 *
 * Each device keeps `top`, the highest level since the last fold. A fold takes it, puts the present level in its
 * place, and raises the running maximum of every linked window. An event that lands while a fold runs is either in
 * the value taken or in `top` afterwards, never lost.
 */
#include "meter.h"

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

static void tick(int device, int events)
{
    struct pml_device *dev = &pml_meter.device[device];
    if (!atomic_load_explicit(&dev->used, memory_order_relaxed)) {
        int devices = atomic_load_explicit(&pml_meter.devices, memory_order_relaxed);
        while (devices <= device && !atomic_compare_exchange_weak(&pml_meter.devices, &devices, device + 1)) {
        }
        atomic_store(&dev->used, true);
    }
    atomic_fetch_add_explicit(&pml_meter.ticks, (uint64_t)events, memory_order_release);
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
    tick(device, 1);
    return level;
}

/* For a value that only one thread at a time changes: no bus lock is needed. */
static void add_alone(_Atomic int64_t *value, int64_t amount)
{
    int64_t now = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, now + amount, memory_order_relaxed);
}

void pml_meter_add(int device, const struct pml_events *sum)
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++) {
        atomic_store_explicit(&dev->level[m], sum->level[m], memory_order_relaxed);
        raise_to(&dev->top[m], sum->highest[m]);
    }
    add_alone(&dev->gross, sum->gross);
    add_alone(&dev->count, sum->count);
    tick(device, sum->events);
}

void pml_meter_set(int device, int64_t size, const int64_t totals[PML_METRICS])
{
    struct pml_events one = {.gross = size > 0 ? size : 0, .count = size > 0, .events = 1};
    memcpy(one.level, totals, sizeof one.level);
    memcpy(one.highest, totals, sizeof one.highest);
    pml_meter_add(device, &one);
}

void pml_meter_adjust(int device, enum pml_metric metric, int64_t value)
{
    struct pml_device *dev = &pml_meter.device[device];
    atomic_store_explicit(&dev->level[metric], value, memory_order_relaxed);
    raise_to(&dev->top[metric], value);
    tick(device, 1);
}

void pml_meter_touch(void)
{
    atomic_fetch_add_explicit(&pml_meter.ticks, 1, memory_order_release);
}

void pml_meter_observe(int device, const struct pml_levels *now, const int64_t peak[PML_METRICS])
{
    struct pml_device *dev = &pml_meter.device[device];
    for (int m = 0; m < PML_METRICS; m++) {
        atomic_store_explicit(&dev->level[m], now->level[m], memory_order_relaxed);
        raise_to(&dev->top[m], peak[m]);
    }
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

static int64_t take_top(struct pml_device *dev, int metric)
{
    int64_t peak = atomic_load_explicit(&dev->top[metric], memory_order_relaxed);
    int64_t level;
    do {
        level = atomic_load_explicit(&dev->level[metric], memory_order_relaxed);
        if (peak == level)
            break;
    } while (!atomic_compare_exchange_weak_explicit(&dev->top[metric], &peak, level, memory_order_relaxed,
                                                    memory_order_relaxed));
    return peak > level ? peak : level;
}

/* Devices that appeared after the window began held nothing then. */
static void cover_devices(struct pml_window *window, int devices)
{
    while (window->devices < devices)
        window->span[window->devices++] = (struct pml_span){.start = {0}};
}

static void fold_device(int device)
{
    struct pml_device *dev = &pml_meter.device[device];
    int64_t peak[PML_METRICS];
    for (int m = 0; m < PML_METRICS; m++)
        peak[m] = take_top(dev, m);
    for (struct pml_window *w = pml_meter.windows.next; w != &pml_meter.windows; w = w->next) {
        cover_devices(w, device + 1);
        for (int m = 0; m < PML_METRICS; m++)
            if (w->span[device].peak[m] < peak[m])
                w->span[device].peak[m] = peak[m];
    }
}

void pml_meter_fold(void)
{
    uint64_t ticks = pml_meter_ticks();
    if (ticks == pml_meter.folded)
        return;
    pml_meter.folded = ticks;
    int devices = pml_meter_devices();
    for (int d = 0; d < devices; d++)
        if (pml_meter_used(d))
            fold_device(d);
}

void pml_meter_fold_extra(int device)
{
    for (struct pml_window *w = pml_meter.windows.next; w != &pml_meter.windows; w = w->next)
        pml_marks_raise(&w->marks, device);
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

void pml_window_restart(struct pml_window *window)
{
    window->ticks = pml_meter_ticks();
    window->devices = pml_meter_devices();
    for (int d = 0; d < window->devices; d++) {
        struct pml_levels now;
        pml_meter_read(d, &now);
        struct pml_span *span = &window->span[d];
        memcpy(span->peak, now.level, sizeof span->peak);
        memcpy(span->start, now.level, sizeof span->start);
        span->gross = now.gross;
        span->count = now.count;
    }
}

void pml_window_absorb(struct pml_window *outer, const struct pml_window *inner)
{
    cover_devices(outer, inner->devices);
    for (int d = 0; d < inner->devices; d++)
        for (int m = 0; m < PML_METRICS; m++)
            if (outer->span[d].peak[m] < inner->span[d].peak[m])
                outer->span[d].peak[m] = inner->span[d].peak[m];
    pml_marks_absorb(&outer->marks, &inner->marks);
}

void pml_meter_forget_windows(void)
{
    while (pml_meter.windows.next != &pml_meter.windows)
        pml_window_unlink(pml_meter.windows.next);
}
