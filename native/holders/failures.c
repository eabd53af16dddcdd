/* Allocations that failed (see failures.h). */
#include "holders/failures.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock_order.h"
#include "holders/active_pictures.h"
#include "holders/ledger.h"
#include "holders/thread_line.h"

struct pml_failures {
    int count; /* also of those that were not kept */
    int kept;
    struct pml_failure failure[PML_MOST_FAILURES];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint64_t numbers;
static _Thread_local uint64_t last;

static _Thread_local struct {
    bool known;
    int64_t unused;
    int64_t total;
} capacity;

void pml_failures_lock(void)
{
    pml_lock_order_taken(PML_RANK_FAILURES, 0);
    pthread_mutex_lock(&mutex);
}

void pml_failures_unlock(void)
{
    pthread_mutex_unlock(&mutex);
    pml_lock_order_given(PML_RANK_FAILURES, 0);
}

void pml_failures_note_capacity(int64_t unused, int64_t total)
{
    capacity.known = true;
    capacity.unused = unused;
    capacity.total = total;
}

static struct pml_failure failure_now(int device, int64_t asked, int64_t allocated, int64_t reserved)
{
    struct pml_levels now;
    pml_meter_read(device, &now);
    last = atomic_fetch_add(&numbers, 1) + 1;
    struct pml_failure failure = {
        .number = last,
        .device = device,
        .asked = asked,
        .allocated = allocated < 0 ? now.level[PML_ALLOCATED] : allocated,
        .active = device == PML_CPU ? now.level[PML_ALLOCATED] : now.level[PML_ACTIVE],
        .reserved = reserved,
        .unused = capacity.known && device != PML_CPU ? capacity.unused : -1,
        .total = capacity.known && device != PML_CPU ? capacity.total : -1,
    };
    capacity.known = false;
    return failure;
}

static struct pml_failures *failures_of(struct pml_peak_picture *picture)
{
    if (!picture->failures)
        picture->failures = calloc(1, sizeof *picture->failures);
    return picture->failures;
}

/* The device is locked, and the mutex held. */
static void keep(struct pml_peak_picture *picture, struct pml_failure failure, const struct pml_owner *owner)
{
    struct pml_failures *failures = failures_of(picture);
    if (!failures) {
        picture->failed = true;
        return;
    }
    failures->count++;
    if (failures->kept == PML_MOST_FAILURES)
        return;
    failure.at = pml_peak_picture_holder(picture, owner);
    if (!pml_peak_picture_list_live(failure.device, picture, &failure.list))
        picture->failed = true;
    failures->failure[failures->kept++] = failure;
}

void pml_failures_note(int device, int64_t asked, int64_t allocated, int64_t reserved)
{
    pml_ledger_lock(device);
    struct pml_failure failure = failure_now(device, asked, allocated, reserved);
    const struct pml_owner *owner = pml_thread_line_owner();
    pml_failures_lock();
    for (uint64_t left = pml_active_pictures_groups(); left;)
        keep(pml_active_pictures_next(&left), failure, owner);
    pml_failures_unlock();
    pml_ledger_unlock(device);
}

uint64_t pml_failures_last(void)
{
    return last;
}

int pml_failures_count(const struct pml_peak_picture *picture)
{
    pml_failures_lock();
    int count = picture->failures ? picture->failures->count : 0;
    pml_failures_unlock();
    return count;
}

bool pml_failures_get(const struct pml_peak_picture *picture, int i, struct pml_failure *failure)
{
    pml_failures_lock();
    bool there = picture->failures && i < picture->failures->kept;
    if (there)
        *failure = picture->failures->failure[i];
    pml_failures_unlock();
    return there;
}

void pml_failures_clear(struct pml_peak_picture *picture)
{
    pml_failures_lock();
    struct pml_failures *failures = picture->failures;
    picture->failures = NULL;
    pml_failures_unlock();
    for (int i = 0; failures && i < failures->kept; i++)
        free(failures->failure[i].list.holder);
    free(failures);
}
