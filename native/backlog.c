/* Reports that wait to be counted (see backlog.h): a ring a device. It begins anew whenever it is empty, so that few reports
 * use little of it. There is room for a backward pass: one thread then counts all, and what it needs for that stays in the
 * cache of one processor.
 */
#include "backlog.h"

#include <sched.h>
#include <string.h>

#include "places.h"

#define ROOM 1024

static struct backlog {
    _Atomic bool gate;
    _Atomic unsigned end;   /* written with the gate held */
    _Atomic unsigned begin; /* written with the device locked */
    struct pml_report report[ROOM];
} backlogs[PML_MAX_DEVICES];

_Atomic uint64_t pml_backlog_devices;

static void close_gate(struct backlog *backlog)
{
    while (atomic_exchange_explicit(&backlog->gate, true, memory_order_acquire))
        sched_yield();
}

static void open_gate(struct backlog *backlog)
{
    atomic_store_explicit(&backlog->gate, false, memory_order_release);
}

static void note_waiting(int device)
{
    if (!(pml_backlog_waiting() >> device & 1))
        atomic_fetch_or_explicit(&pml_backlog_devices, UINT64_C(1) << device, memory_order_relaxed);
}

bool pml_backlog_add(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved, bool owned)
{
    struct backlog *backlog = &backlogs[device];
    close_gate(backlog);
    unsigned end = atomic_load_explicit(&backlog->end, memory_order_relaxed);
    bool room = end - atomic_load_explicit(&backlog->begin, memory_order_acquire) < ROOM;
    if (room) {
        struct pml_owner *owner = owned ? pml_place_owner() : NULL;
        backlog->report[end % ROOM] = (struct pml_report){pointer, size, allocated, reserved, owner};
        atomic_store_explicit(&backlog->end, end + 1, memory_order_release);
        note_waiting(device);
    }
    open_gate(backlog);
    return room;
}

/* Where the reports end now. Empty: it begins anew. The gate is held. */
static unsigned end_of(struct backlog *backlog, int device)
{
    unsigned end = atomic_load_explicit(&backlog->end, memory_order_relaxed);
    if (end == atomic_load_explicit(&backlog->begin, memory_order_relaxed)) {
        atomic_fetch_and_explicit(&pml_backlog_devices, ~(UINT64_C(1) << device), memory_order_relaxed);
        atomic_store_explicit(&backlog->begin, 0, memory_order_relaxed);
        atomic_store_explicit(&backlog->end, 0, memory_order_relaxed);
        end = 0;
    }
    return end;
}

static void count_until(struct backlog *backlog, int device, unsigned end, pml_count_reports *count)
{
    unsigned i = atomic_load_explicit(&backlog->begin, memory_order_relaxed);
    while (i != end) {
        unsigned to_edge = ROOM - i % ROOM, many = end - i < to_edge ? end - i : to_edge;
        count(device, &backlog->report[i % ROOM], (int)many);
        i += many;
        atomic_store_explicit(&backlog->begin, i, memory_order_release);
    }
}

void pml_backlog_take(int device, pml_count_reports *count)
{
    struct backlog *backlog = &backlogs[device];
    for (int time = 0; time < 2; time++) { /* the second: what came meanwhile, most often nothing */
        close_gate(backlog);
        unsigned end = end_of(backlog, device);
        open_gate(backlog);
        count_until(backlog, device, end, count);
    }
}

void pml_backlog_shut(int device, pml_count_reports *count)
{
    struct backlog *backlog = &backlogs[device];
    close_gate(backlog);
    count_until(backlog, device, end_of(backlog, device), count);
    end_of(backlog, device);
}

void pml_backlog_open(int device)
{
    open_gate(&backlogs[device]);
}

static int64_t higher(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct pml_events pml_backlog_sum(const struct pml_report *report, int count, int64_t pending)
{
    int64_t allocated = 0, reserved = 0;
    struct pml_events sum = {.events = count};
    for (int i = 0; i < count; i++) {
        allocated = higher(allocated, report[i].allocated);
        reserved = higher(reserved, report[i].reserved);
        sum.gross += report[i].size > 0 ? report[i].size : 0;
        sum.count += report[i].size > 0;
    }
    const struct pml_report *last = &report[count - 1];
    memcpy(sum.highest, (int64_t[PML_METRICS]){allocated + pending, allocated, reserved}, sizeof sum.highest);
    memcpy(sum.level, (int64_t[PML_METRICS]){last->allocated + pending, last->allocated, last->reserved},
           sizeof sum.level);
    return sum;
}
