/* Reports of accelerators' allocators that have not been counted yet.
 *
 * A report is queued when it arrives, and counted when the device is locked (`pml_ledger_lock`) or the queue is full.
 * Counting many at a time costs a fraction of counting each between the allocator's own work.
 *
 * Threads: a device's reports arrive on any thread, with its allocator's lock held: one at a time. The thread that has
 * locked the device takes them out, while more may arrive. A report of an autograd thread names a line of another
 * thread: it holds the device's gate, which is closed while owners may be freed; below it only leaf mutexes are taken
 * (thread_line, owners).
 */
#ifndef PML_REPORT_QUEUE_H
#define PML_REPORT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/lock_order.h"
#include "meter/meter.h"

struct pml_owner;

struct pml_report {
    const void *pointer;
    int64_t size;      /* < 0: freed */
    int64_t allocated; /* totals after it */
    int64_t reserved;
    struct pml_owner *owner; /* of an allocation: the line that was running; else `pml_owners_nobody` */
};

typedef void pml_count_reports(int device, const struct pml_report *report, int count);

/* There is room for a backward pass: one thread then counts all, and what it needs for that stays in the cache of one
 * processor. */
#define PML_REPORT_QUEUE_ROOM 1024

struct pml_report_queue {
    _Atomic uint64_t written; /* reports until now */
    _Atomic uint64_t counted;
    uint64_t first; /* the report at the array's beginning: moves to the next one whenever all are counted */
    struct pml_lock gate;
    struct pml_report report[PML_REPORT_QUEUE_ROOM];
};

extern struct pml_report_queue pml_report_queue[PML_MAX_DEVICES];

/* While one gate is held no owner goes away. */
static inline void pml_report_queue_hold_gate(int device)
{
    pml_lock_order_taken(PML_RANK_GATE, device);
    pml_lock_take(&pml_report_queue[device].gate);
}

static inline void pml_report_queue_let_gate_go(int device)
{
    pml_lock_give(&pml_report_queue[device].gate);
    pml_lock_order_given(PML_RANK_GATE, device);
}

static inline bool pml_report_queue_waits(int device)
{
    const struct pml_report_queue *queue = &pml_report_queue[device];
    return atomic_load_explicit(&queue->written, memory_order_relaxed) !=
           atomic_load_explicit(&queue->counted, memory_order_relaxed);
}

/* Write one down; `owned`: with the line that runs. False: no room. */
bool pml_report_queue_add(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved,
                          bool owned);
/* Count all there are, in their order. The device is locked. */
void pml_report_queue_take(int device, pml_count_reports *count);
/* The same, and shut the gate: an autograd thread that comes with a report waits. */
void pml_report_queue_shut(int device, pml_count_reports *count);
void pml_report_queue_open(int device);

/* What several reports mean for the meter. `pending`: bytes of freed blocks that wait for streams. */
void pml_report_queue_sum(const struct pml_report *report, int count, int64_t pending, struct pml_meter_events *sum);

#endif
