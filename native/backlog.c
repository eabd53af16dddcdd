/* Reports that wait to be counted (see backlog.h): a ring a device, with one writer and one reader at a time. */
#include "backlog.h"

#include "places.h"

struct pml_backlog pml_backlog[PML_MAX_DEVICES];

static struct pml_report *at(struct pml_backlog *backlog, uint64_t number)
{
    return &backlog->report[(number - backlog->first) % PML_BACKLOG_ROOM];
}

/* Where the next report goes; NULL: no room. */
static inline struct pml_report *next_place(int device)
{
    struct pml_backlog *backlog = &pml_backlog[device];
    uint64_t written = atomic_load_explicit(&backlog->written, memory_order_relaxed);
    uint64_t waiting = written - atomic_load_explicit(&backlog->counted, memory_order_acquire);
    if (waiting == PML_BACKLOG_ROOM)
        return NULL;
    if (waiting == 0)
        backlog->first = written;
    if (device >= pml_meter_devices())
        pml_meter_expect(device);
    return at(backlog, written);
}

static inline void note_written(struct pml_backlog *backlog)
{
    uint64_t written = atomic_load_explicit(&backlog->written, memory_order_relaxed);
    atomic_store_explicit(&backlog->written, written + 1, memory_order_release);
}

__attribute__((noinline)) static void write_waiting_line(int device, struct pml_report *report)
{
    pml_backlog_hold_gate(device);
    struct pml_owner *owner = pml_place_waiting_line();
    report->owner = owner ? owner : &pml_owner_nobody;
    note_written(&pml_backlog[device]);
    pml_backlog_let_gate_go(device);
}

PML_OFTEN bool pml_backlog_add(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved,
                               bool owned)
{
    struct pml_report *report = next_place(device);
    bool waits = false;
    if (!report)
        return false;
    report->pointer = pointer;
    report->size = size;
    report->allocated = allocated;
    report->reserved = reserved;
    struct pml_owner *owner = owned ? pml_place_line(&waits) : NULL;
    report->owner = owner ? owner : &pml_owner_nobody;
    if (waits)
        write_waiting_line(device, report);
    else
        note_written(&pml_backlog[device]);
    return true;
}

PML_OFTEN void pml_backlog_take(int device, pml_count_reports *count)
{
    struct pml_backlog *backlog = &pml_backlog[device];
    uint64_t next = atomic_load_explicit(&backlog->counted, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&backlog->written, memory_order_acquire);
    while (next != end) {
        const struct pml_report *reports = at(backlog, next);
        uint64_t room = (uint64_t)(&backlog->report[PML_BACKLOG_ROOM] - reports);
        uint64_t many = end - next < room ? end - next : room;
        count(device, reports, (int)many);
        next += many;
    }
    atomic_store_explicit(&backlog->counted, end, memory_order_release);
}

void pml_backlog_shut(int device, pml_count_reports *count)
{
    pml_backlog_hold_gate(device);
    pml_backlog_take(device, count);
}

void pml_backlog_open(int device)
{
    pml_backlog_let_gate_go(device);
}

PML_OFTEN void pml_backlog_sum(const struct pml_report *report, int count, int64_t pending, struct pml_events *sum)
{
    const struct pml_report *last = &report[count - 1];
    int64_t allocated = 0, reserved = 0, gross = 0, allocations = 0;
    for (const struct pml_report *r = report; r <= last; r++) {
        allocated = pml_higher(allocated, r->allocated);
        reserved = pml_higher(reserved, r->reserved);
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
