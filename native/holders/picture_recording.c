/* Taking pictures (see picture_recording.h). */
#include "holders/picture_recording.h"

#include <stdlib.h>

#include "base/moment.h"
#include "holders/active_pictures.h"
#include "holders/failures.h"
#include "holders/ledger.h"

static int free_group(void)
{
    for (int group = 0; group < PML_MAX_GROUPS; group++)
        if (!pml_active_pictures[group])
            return group;
    return -1;
}

static void begin(struct pml_peak_picture *picture)
{
    if (picture->recorders++ > 0)
        return;
    if (!picture->since)
        picture->since = pml_moment_next();
    picture->group = free_group();
    if (picture->group < 0) {
        picture->failed = true;
        return;
    }
    atomic_store(&picture->open, 0);
    pml_active_pictures[picture->group] = picture;
    atomic_fetch_or(&pml_active_pictures_bits, UINT64_C(1) << picture->group);
}

void pml_picture_recording_start(struct pml_peak_picture *picture, struct pml_recorder *recorder)
{
    begin(picture);
    recorder->group = picture->group < 0 ? 0 : UINT64_C(1) << picture->group;
    recorder->group_since = picture->since;
}

/* Moves the holders to the list, before what they are resolved by changes. */
static void keep(struct pml_peak_picture *picture, int device)
{
    struct pml_peak *peak = picture->device[device];
    if (!peak || peak->kept)
        return;
    struct pml_holder_list list = {.count = 0};
    if (!pml_peak_picture_list_peak(picture, device, &list))
        picture->failed = true;
    free(peak->list.holder);
    peak->list = list;
    peak->kept = true;
}

static void end(struct pml_peak_picture *picture)
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

void pml_picture_recording_stop(struct pml_peak_picture *picture, struct pml_recorder *recorder)
{
    recorder->group = 0;
    end(picture);
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
    for (uint64_t left = groups; left;) {
        struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (picture && atomic_fetch_add(&picture->open, 1) == 0)
            pml_ledger_observe_now(picture);
    }
}

void pml_picture_recording_close(uint64_t groups)
{
    for (uint64_t left = groups; left;) {
        struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (picture)
            atomic_fetch_sub(&picture->open, 1);
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
        there = peak->kept ? pml_peak_picture_copy_list(&copy->list, &peak->list)
                           : pml_peak_picture_list_peak(picture, device, &copy->list);
        picture->failed |= !there;
    }
    pml_ledger_unlock(device);
    return there;
}
