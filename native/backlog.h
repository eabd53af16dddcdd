/* What accelerators' allocators reported and nobody has counted yet.
 *
 * A report is only written down when it comes; it is counted when someone looks at the device (`pml_holders_lock`), or when
 * there is no room. Counting many at a time costs a fraction of counting each between the allocator's own work.
 *
 * Threads: reports come on any thread, with an allocator's lock held. A device's gate is held while one is written, and
 * shut while owners may go away; below it only leaf mutexes are taken (places, owners). Reports are taken out by who has
 * locked the device.
 */
#ifndef PML_BACKLOG_H
#define PML_BACKLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "meter.h"

struct pml_owner;

struct pml_report {
    const void *pointer;
    int64_t size; /* < 0: freed */
    int64_t allocated; /* totals after it */
    int64_t reserved;
    struct pml_owner *owner; /* of an allocation: the line that was running */
};

typedef void pml_count_reports(int device, const struct pml_report *report, int count);

/* A bit for each device with reports. */
extern _Atomic uint64_t pml_backlog_devices;

static inline uint64_t pml_backlog_waiting(void)
{
    return atomic_load_explicit(&pml_backlog_devices, memory_order_relaxed);
}

/* Write one down; `owned`: with the line that runs. False: no room. */
bool pml_backlog_add(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved, bool owned);
/* Count all there are, in their order. The device is locked. */
void pml_backlog_take(int device, pml_count_reports *count);
/* The same, and shut the gate: who comes with a report waits. */
void pml_backlog_shut(int device, pml_count_reports *count);
void pml_backlog_open(int device);

/* What several reports mean for the meter. `pending`: bytes of freed blocks that wait for streams. */
struct pml_events pml_backlog_sum(const struct pml_report *report, int count, int64_t pending);

#endif
