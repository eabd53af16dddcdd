/* All pictures (see active_pictures.h). */
#include "holders/active_pictures.h"

#include <stdlib.h>

#include "holders/failures.h"
#include "holders/owner_bytes.h"
#include "holders/ledger.h"

struct pml_peak_picture *pml_active_pictures[PML_MAX_GROUPS];
PML_READ_MOSTLY _Atomic uint64_t pml_active_pictures_bits;

uint64_t pml_active_pictures_open(void)
{
    uint64_t open = 0;
    for (uint64_t left = pml_active_pictures_groups(); left;) {
        const struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (atomic_load_explicit(&picture->open, memory_order_relaxed) > 0)
            open |= UINT64_C(1) << picture->group;
    }
    return open;
}

static int free_group(void)
{
    for (int group = 0; group < PML_MAX_GROUPS; group++)
        if (!pml_active_pictures[group])
            return group;
    return -1;
}

void pml_picture_recording_start(struct pml_peak_picture *picture)
{
    if (picture->recorders++ > 0)
        return;
    pml_ledger_catch_up();
    if (!picture->since)
        picture->since = ++pml_owners_serial;
    picture->group = free_group();
    if (picture->group < 0) {
        picture->failed = true;
        return;
    }
    atomic_store(&picture->open, 0);
    pml_active_pictures[picture->group] = picture;
    atomic_fetch_or(&pml_active_pictures_bits, UINT64_C(1) << picture->group);
}

/* The holders at a device's peak, in a list of their own. */
static bool list_holders(const struct pml_peak_picture *picture, int device, struct pml_holder_list *list)
{
    const struct pml_peak *peak = picture->device[device];
    int end = pml_owner_bytes_end(device);
    for (int i = 0; i < end; i++) {
        int64_t bytes = pml_peak_picture_bytes(peak, i, pml_owner_bytes_live(pml_owner_bytes_of(device, i)));
        if (bytes && !pml_peak_picture_append(list, picture, pml_owners_by_index(i), bytes))
            return false;
    }
    return true;
}

/* The holders go from the marks to the list, before what they are resolved by changes. */
static void keep(struct pml_peak_picture *picture, int device)
{
    struct pml_peak *peak = picture->device[device];
    if (!peak || peak->kept)
        return;
    struct pml_holder_list list = {.count = 0};
    if (!list_holders(picture, device, &list))
        picture->failed = true;
    free(peak->list.holder);
    peak->list = list;
    peak->kept = true;
}

void pml_picture_recording_stop(struct pml_peak_picture *picture)
{
    if (picture->recorders == 0 || --picture->recorders > 0 || picture->group < 0)
        return;
    uint64_t bit = UINT64_C(1) << picture->group;
    pml_ledger_lock_all(); /* no event is under way when the picture leaves */
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        keep(picture, d);
    atomic_fetch_and(&pml_active_pictures_bits, ~bit);
    pml_active_pictures[picture->group] = NULL;
    picture->group = -1;
    pml_ledger_unlock_all();
}

void pml_picture_recording_clear(struct pml_peak_picture *picture)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        pml_ledger_lock(d);
        pml_peak_picture_forget(picture, d);
        pml_ledger_unlock(d);
    }
    pml_failures_clear(picture);
    picture->failed = picture->recorders && picture->group < 0;
}

void pml_picture_recording_open(uint64_t groups)
{
    if (groups)
        pml_ledger_catch_up();
    for (uint64_t left = groups; left;) {
        struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (picture && atomic_fetch_add(&picture->open, 1) == 0)
            pml_ledger_observe_now(picture);
    }
}

void pml_picture_recording_close(uint64_t groups)
{
    if (groups)
        pml_ledger_catch_up();
    for (uint64_t left = groups; left;) {
        struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (picture)
            atomic_fetch_sub(&picture->open, 1);
    }
}

void pml_active_pictures_fail(uint64_t groups)
{
    for (uint64_t left = groups; left;) {
        struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (picture)
            picture->failed = true;
    }
}

bool pml_picture_recording_copy(struct pml_peak_picture *picture, int device, struct pml_peak *copy)
{
    pml_ledger_lock(device);
    const struct pml_peak *peak = picture->device[device];
    bool there = peak && peak->peak >= 0;
    if (there) {
        *copy = *peak;
        copy->at_peak = NULL;
        copy->list = (struct pml_holder_list){.count = 0};
        there = peak->kept ? pml_peak_picture_copy_list(&copy->list, &peak->list) : list_holders(picture, device, &copy->list);
        picture->failed |= !there;
    }
    pml_ledger_unlock(device);
    return there;
}

bool pml_peak_picture_list_live(int device, const struct pml_peak_picture *picture, struct pml_holder_list *list)
{
    int end = pml_owner_bytes_end(device);
    for (int i = 0; i < end; i++) {
        int64_t bytes = pml_owner_bytes_live(pml_owner_bytes_of(device, i));
        if (bytes && !pml_peak_picture_append(list, picture, pml_owners_by_index(i), bytes))
            return false;
    }
    return true;
}

bool pml_picture_recording_unused(int index)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        if (pml_owner_bytes_live(pml_owner_bytes_of(d, index)))
            return false;
        for (uint64_t left = pml_active_pictures_groups(); left;) {
            const struct pml_peak *peak = pml_active_pictures_next(&left)->device[d];
            if (peak && !peak->kept && pml_peak_picture_bytes(peak, index, 0))
                return false;
        }
    }
    return true;
}
