/* The process-wide state of the core, as it is before anything happened. */
#ifndef PML_FRESH_H
#define PML_FRESH_H

#include <string.h>

#include "meter/window.h"

static inline void fresh_meter(void)
{
    memset((void *)&pml_meter, 0, sizeof pml_meter);
    atomic_store(&pml_meter.devices, 1);
    pml_window_list.next = pml_window_list.prev = &pml_window_list;
}

/* How many windows are linked. */
static inline int linked_windows(void)
{
    int count = 0;
    for (const struct pml_window *w = pml_window_list.next; w != &pml_window_list; w = w->next)
        count++;
    return count;
}

/* While no other thread counts on an accelerator. */
static inline void fold(void)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        pml_window_fold_device(d);
}

/* Begin a window that stands alone, as `peak_memory` would. */
static inline void open_window(struct pml_window *window)
{
    fold();
    pml_window_restart(window);
    pml_window_link(window);
}

static inline void close_window(struct pml_window *window)
{
    fold();
    pml_window_unlink(window);
}

/* An accelerator's report: the size, and its totals after the event. Active is taken to be allocated. */
static inline void report(int device, int64_t size, int64_t allocated, int64_t reserved)
{
    const int64_t totals[PML_METRICS] = {allocated, allocated, reserved};
    pml_meter_set(device, size, totals);
}

#endif
