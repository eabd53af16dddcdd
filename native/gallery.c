/* All pictures (see gallery.h). */
#include "gallery.h"

#include <stdlib.h>

#include "failures.h"
#include "held.h"
#include "holders.h"

struct pml_picture *pml_gallery[PML_MAX_GROUPS];
PML_READ_OFTEN _Atomic uint64_t pml_gallery_active;

uint64_t pml_gallery_open(void)
{
    uint64_t open = 0;
    for (uint64_t left = pml_gallery_groups(); left;) {
        const struct pml_picture *picture = pml_gallery_next(&left);
        if (atomic_load_explicit(&picture->open, memory_order_relaxed) > 0)
            open |= UINT64_C(1) << picture->group;
    }
    return open;
}

static int free_group(void)
{
    for (int group = 0; group < PML_MAX_GROUPS; group++)
        if (!pml_gallery[group])
            return group;
    return -1;
}

void pml_picture_start(struct pml_picture *picture)
{
    if (picture->recorders++ > 0)
        return;
    pml_holders_catch_up();
    if (!picture->since)
        picture->since = ++pml_owners_serial;
    picture->group = free_group();
    if (picture->group < 0) {
        picture->failed = true;
        return;
    }
    atomic_store(&picture->open, 0);
    pml_gallery[picture->group] = picture;
    atomic_fetch_or(&pml_gallery_active, UINT64_C(1) << picture->group);
}

/* The holders at a device's peak, in a list of their own. */
static bool list_holders(const struct pml_picture *picture, int device, struct pml_holder_list *list)
{
    const struct pml_peak *peak = picture->device[device];
    int end = pml_held_end(device);
    for (int i = 0; i < end; i++) {
        int64_t bytes = pml_picture_bytes(peak, i, pml_held_live(pml_held_of(device, i)));
        if (bytes && !pml_holder_append(list, picture, pml_owner_of(i), bytes))
            return false;
    }
    return true;
}

/* The holders go from the marks to the list, before what they are resolved by changes. */
static void keep(struct pml_picture *picture, int device)
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

void pml_picture_stop(struct pml_picture *picture)
{
    if (picture->recorders == 0 || --picture->recorders > 0 || picture->group < 0)
        return;
    uint64_t bit = UINT64_C(1) << picture->group;
    pml_holders_lock_all(); /* no event is under way when the picture leaves */
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        keep(picture, d);
    atomic_fetch_and(&pml_gallery_active, ~bit);
    pml_gallery[picture->group] = NULL;
    picture->group = -1;
    pml_holders_unlock_all();
}

void pml_picture_clear(struct pml_picture *picture)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        pml_holders_lock(d);
        pml_picture_forget(picture, d);
        pml_holders_unlock(d);
    }
    pml_failures_clear(picture);
    picture->failed = picture->recorders && picture->group < 0;
}

void pml_pictures_open(uint64_t groups)
{
    if (groups)
        pml_holders_catch_up();
    for (uint64_t left = groups; left;) {
        struct pml_picture *picture = pml_gallery_next(&left);
        if (picture && atomic_fetch_add(&picture->open, 1) == 0)
            pml_holders_see_now(picture);
    }
}

void pml_pictures_close(uint64_t groups)
{
    if (groups)
        pml_holders_catch_up();
    for (uint64_t left = groups; left;) {
        struct pml_picture *picture = pml_gallery_next(&left);
        if (picture)
            atomic_fetch_sub(&picture->open, 1);
    }
}

void pml_pictures_fail(uint64_t groups)
{
    for (uint64_t left = groups; left;) {
        struct pml_picture *picture = pml_gallery_next(&left);
        if (picture)
            picture->failed = true;
    }
}

bool pml_picture_copy(struct pml_picture *picture, int device, struct pml_peak *copy)
{
    pml_holders_lock(device);
    const struct pml_peak *peak = picture->device[device];
    bool there = peak && peak->peak >= 0;
    if (there) {
        *copy = *peak;
        copy->mark = NULL;
        copy->list = (struct pml_holder_list){.count = 0};
        there = peak->kept ? pml_holder_list_copy(&copy->list, &peak->list) : list_holders(picture, device, &copy->list);
        picture->failed |= !there;
    }
    pml_holders_unlock(device);
    return there;
}

bool pml_holders_now(int device, const struct pml_picture *picture, struct pml_holder_list *list)
{
    int end = pml_held_end(device);
    for (int i = 0; i < end; i++) {
        int64_t bytes = pml_held_live(pml_held_of(device, i));
        if (bytes && !pml_holder_append(list, picture, pml_owner_of(i), bytes))
            return false;
    }
    return true;
}

bool pml_holders_unused(int index)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        if (pml_held_live(pml_held_of(d, index)))
            return false;
        for (uint64_t left = pml_gallery_groups(); left;) {
            const struct pml_peak *peak = pml_gallery_next(&left)->device[d];
            if (peak && !peak->kept && pml_picture_bytes(peak, index, 0))
                return false;
        }
    }
    return true;
}
