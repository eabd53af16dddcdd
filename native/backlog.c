/* Reports that wait to be counted (see backlog.h): two arrays a device, one to write while the other is counted. There is room
 * for a backward pass: one thread then counts all, and what it needs for that stays in the cache of one processor.
 */
#include "backlog.h"

#include <sched.h>
#include <string.h>

#include "places.h"

#define ROOM 1024

static struct backlog {
    _Atomic bool gate; /* held for the next two */
    int written;       /* which array is written */
    int count;         /* how many are in it */
    struct pml_report report[2][ROOM]; /* the other one belongs to who has locked the device */
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
    bool room = backlog->count < ROOM;
    if (room) {
        struct pml_owner *owner = owned ? pml_place_owner() : NULL;
        backlog->report[backlog->written][backlog->count++] =
            (struct pml_report){pointer, size, allocated, reserved, owner};
        note_waiting(device);
    }
    open_gate(backlog);
    return room;
}

/* The other array is written from now on, and what is in this one is counted: with the gate shut, or open again. */
static void take(int device, pml_count_reports *count, bool shut)
{
    struct backlog *backlog = &backlogs[device];
    close_gate(backlog);
    const struct pml_report *reports = backlog->report[backlog->written];
    int many = backlog->count;
    backlog->written ^= 1;
    backlog->count = 0;
    atomic_fetch_and_explicit(&pml_backlog_devices, ~(UINT64_C(1) << device), memory_order_relaxed);
    if (!shut)
        open_gate(backlog);
    if (many)
        count(device, reports, many);
}

void pml_backlog_take(int device, pml_count_reports *count)
{
    take(device, count, false);
}

void pml_backlog_shut(int device, pml_count_reports *count)
{
    take(device, count, true);
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
