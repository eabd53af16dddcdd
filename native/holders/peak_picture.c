/* Pictures (see peak_picture.h). */
#include "holders/peak_picture.h"

#include <stdlib.h>
#include <string.h>

#include "holders/owner_bytes.h"

static struct pml_peak *peak_of(struct pml_peak_picture *picture, int device)
{
    struct pml_peak *peak = picture->device[device];
    if (peak)
        return peak;
    peak = picture->device[device] = calloc(1, sizeof *peak);
    if (!peak) {
        picture->failed = true;
        return NULL;
    }
    peak->peak = -1;
    peak->epoch = 1;
    return peak;
}

static bool cover(struct pml_peak *peak, int index)
{
    if (index < peak->at_peak_capacity)
        return true;
    int at_peak_capacity = peak->at_peak_capacity ? peak->at_peak_capacity : 32;
    while (at_peak_capacity <= index)
        at_peak_capacity *= 2;
    struct pml_bytes_at_peak *grown = realloc(peak->at_peak, (size_t)at_peak_capacity * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + peak->at_peak_capacity, 0, (size_t)(at_peak_capacity - peak->at_peak_capacity) * sizeof *grown);
    peak->at_peak = grown;
    peak->at_peak_capacity = at_peak_capacity;
    return true;
}

void pml_peak_picture_before_change(struct pml_peak_picture *picture, int device, int index, int64_t bytes)
{
    struct pml_peak *peak = picture->device[device];
    if (!peak || peak->kept)
        return;
    if (!cover(peak, index))
        picture->failed = true;
    else if (peak->at_peak[index].epoch != peak->epoch)
        peak->at_peak[index] = (struct pml_bytes_at_peak){bytes, peak->epoch};
}

struct pml_holder pml_peak_picture_holder(const struct pml_peak_picture *picture, const struct pml_owner *owner)
{
    struct pml_holder holder = {.code = NULL};
    const struct pml_owner *found = owner ? pml_owners_resolve(owner, picture->group, picture->since) : NULL;
    if (found) {
        holder.code = found->code ? found->code->key : NULL;
        holder.line = found->line;
        holder.kind = owner->kind;
    }
    return holder;
}

void pml_peak_picture_begin(struct pml_peak_picture *picture, int device, int64_t level)
{
    if (picture->device[device])
        return;
    struct pml_peak *peak = peak_of(picture, device);
    if (peak)
        pml_series_add(&peak->series, level);
}

bool pml_peak_picture_observe(struct pml_peak_picture *picture, int device, int64_t value,
                              const struct pml_owner *owner)
{
    struct pml_peak *peak = peak_of(picture, device);
    if (!peak)
        return false;
    pml_series_add(&peak->series, value);
    if (value <= peak->peak)
        return false;
    peak->peak = value;
    peak->epoch++;
    peak->kept = false;
    peak->at = pml_peak_picture_holder(picture, owner);
    return true;
}

int64_t pml_peak_picture_bytes(const struct pml_peak *peak, int index, int64_t bytes)
{
    bool marked = index < peak->at_peak_capacity && peak->at_peak[index].epoch == peak->epoch;
    return marked ? peak->at_peak[index].bytes : bytes;
}

bool pml_peak_picture_append(struct pml_holder_list *list, const struct pml_peak_picture *picture,
                             const struct pml_owner *owner, int64_t bytes)
{
    if (!bytes || !owner || !pml_owners_resolve(owner, picture->group, picture->since))
        return true;
    if ((list->count & (list->count - 1)) == 0) { /* 0 or a power of two: full */
        size_t room = list->count ? (size_t)list->count * 2 : 1;
        struct pml_holder *grown = realloc(list->holder, room * sizeof *grown);
        if (!grown)
            return false;
        list->holder = grown;
    }
    struct pml_holder holder = pml_peak_picture_holder(picture, owner);
    holder.bytes = bytes;
    list->holder[list->count++] = holder;
    return true;
}

bool pml_peak_picture_copy_list(struct pml_holder_list *to, const struct pml_holder_list *from)
{
    *to = (struct pml_holder_list){.count = 0};
    if (from->count == 0)
        return true;
    to->holder = malloc((size_t)from->count * sizeof *to->holder);
    if (!to->holder)
        return false;
    memcpy(to->holder, from->holder, (size_t)from->count * sizeof *to->holder);
    to->count = from->count;
    return true;
}

void pml_peak_picture_forget(struct pml_peak_picture *picture, int device)
{
    struct pml_peak *peak = picture->device[device];
    picture->device[device] = NULL;
    if (!peak)
        return;
    free(peak->at_peak);
    free(peak->list.holder);
    free(peak);
}

bool pml_peak_picture_list_peak(const struct pml_peak_picture *picture, int device, struct pml_holder_list *list)
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
