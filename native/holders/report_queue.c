/* Reports that wait to be counted (see report_queue.h): a ring a device, with one writer and one reader at a time. */
#include "holders/report_queue.h"

#include "holders/thread_line.h"

struct pml_report_queue pml_report_queue[PML_MAX_DEVICES];

static struct pml_report *at(struct pml_report_queue *queue, uint64_t number)
{
    return &queue->report[(number - queue->first) % PML_REPORT_QUEUE_ROOM];
}

/* The slot for the next report; NULL if the queue is full. */
static inline struct pml_report *next_slot(int device)
{
    struct pml_report_queue *queue = &pml_report_queue[device];
    uint64_t written = atomic_load_explicit(&queue->written, memory_order_relaxed);
    uint64_t waiting = written - atomic_load_explicit(&queue->counted, memory_order_acquire);
    if (waiting == PML_REPORT_QUEUE_ROOM)
        return NULL;
    if (waiting == 0)
        queue->first = written;
    if (device >= pml_meter_devices())
        pml_meter_expect(device);
    return at(queue, written);
}

static inline void note_written(struct pml_report_queue *queue)
{
    uint64_t written = atomic_load_explicit(&queue->written, memory_order_relaxed);
    atomic_store_explicit(&queue->written, written + 1, memory_order_release);
}

__attribute__((noinline)) static void write_waiting_line(int device, struct pml_report *report)
{
    pml_report_queue_hold_gate(device);
    struct pml_owner *owner = pml_thread_line_waiting();
    report->owner = owner ? owner : &pml_owners_nobody;
    note_written(&pml_report_queue[device]);
    pml_report_queue_let_gate_go(device);
}

bool pml_report_queue_add(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved,
                          bool owned)
{
    struct pml_report *report = next_slot(device);
    bool waits = false;
    if (!report)
        return false;
    report->pointer = pointer;
    report->size = size;
    report->allocated = allocated;
    report->reserved = reserved;
    struct pml_owner *owner = owned ? pml_thread_line_now(&waits) : NULL;
    report->owner = owner ? owner : &pml_owners_nobody;
    if (waits)
        write_waiting_line(device, report);
    else
        note_written(&pml_report_queue[device]);
    return true;
}

void pml_report_queue_take(int device, pml_count_reports *count)
{
    struct pml_report_queue *queue = &pml_report_queue[device];
    uint64_t next = atomic_load_explicit(&queue->counted, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&queue->written, memory_order_acquire);
    while (next != end) {
        const struct pml_report *reports = at(queue, next);
        uint64_t room = (uint64_t)(&queue->report[PML_REPORT_QUEUE_ROOM] - reports);
        uint64_t many = end - next < room ? end - next : room;
        count(device, reports, (int)many);
        next += many;
    }
    atomic_store_explicit(&queue->counted, end, memory_order_release);
}

void pml_report_queue_shut(int device, pml_count_reports *count)
{
    pml_report_queue_hold_gate(device);
    pml_report_queue_take(device, count);
}

void pml_report_queue_open(int device)
{
    pml_report_queue_let_gate_go(device);
}

void pml_report_queue_sum(const struct pml_report *report, int count, int64_t pending, struct pml_meter_events *sum)
{
    const struct pml_report *last = &report[count - 1];
    int64_t allocated = 0, reserved = 0, gross = 0, allocations = 0;
    for (const struct pml_report *r = report; r <= last; r++) {
        allocated = pml_numbers_max(allocated, r->allocated);
        reserved = pml_numbers_max(reserved, r->reserved);
        gross += r->size > 0 ? r->size : 0;
        allocations += r->size > 0;
    }
    sum->highest[PML_ACTIVE] = allocated + pending;
    sum->highest[PML_ALLOCATED] = allocated;
    sum->highest[PML_RESERVED] = reserved;
    sum->level[PML_ACTIVE] = last->allocated + pending;
    sum->level[PML_ALLOCATED] = last->allocated;
    sum->level[PML_RESERVED] = last->reserved;
    sum->gross = gross;
    sum->count = allocations;
    sum->events = count;
}
