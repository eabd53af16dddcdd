/* The memory levels from event to event. See levels.h. */
#include "snapshot/levels.h"

#include <string.h>

static void take_lost(const struct pml_replay *replay, uint32_t moment, struct pml_memory_levels *levels)
{
    size_t i = pml_replayed_first_lost(replay, moment);
    for (; i < replay->lost.used && replay->lost.items[i].moment == moment; i++) {
        const struct pml_allocation *allocation = &replay->allocations.items[replay->lost.items[i].allocation];
        levels->active -= allocation->size;
        levels->allocated -= allocation->released == moment ? allocation->size : 0;
    }
}

void pml_levels_step(const struct pml_replay *replay, uint32_t event, struct pml_memory_levels *levels)
{
    enum pml_action action = pml_rows_action_of(&replay->events[event]);
    uint32_t number = replay->of_event.items[event];
    if (replay->lost.used)
        take_lost(replay, event + 1, levels);
    if (number != PML_NO_ALLOCATION) {
        const struct pml_allocation *allocation = &replay->allocations.items[number];
        if (action == PML_ALLOC) {
            levels->allocated += allocation->size;
            levels->active += allocation->size;
            return;
        }
        levels->allocated -= allocation->released == event + 1 ? allocation->size : 0;
        levels->active -= allocation->freed == event + 1 ? allocation->size : 0;
    } else if (action == PML_SEGMENT_ALLOC || action == PML_SEGMENT_MAP) {
        levels->reserved += replay->events[event].size;
    } else if (action == PML_SEGMENT_FREE || action == PML_SEGMENT_UNMAP) {
        levels->reserved -= replay->events[event].size;
    }
}

/* Reserved at the start is what is reserved at the end without what the trace adds; without segments it is what lets
 * the level never be below 0. */
static uint64_t reserved_at_start(const struct pml_replay *replay)
{
    struct pml_memory_levels levels = {0};
    int64_t lowest = 0;
    for (uint32_t i = 0; i < replay->count; i++)
        if (replay->of_event.items[i] == PML_NO_ALLOCATION) {
            pml_levels_step(replay, i, &levels);
            lowest = (int64_t)levels.reserved < lowest ? (int64_t)levels.reserved : lowest;
        }
    return replay->has_segments ? replay->in_file.reserved - levels.reserved : (uint64_t)-lowest;
}

void pml_levels_start(struct pml_replay *replay)
{
    replay->at_start = (struct pml_memory_levels){.reserved = reserved_at_start(replay)};
    for (size_t i = 0; i < replay->allocations.used; i++) {
        const struct pml_allocation *allocation = &replay->allocations.items[i];
        if (allocation->made != PML_BEFORE)
            continue;
        replay->at_start.active += allocation->size;
        replay->at_start.allocated += allocation->released != PML_BEFORE ? allocation->size : 0;
    }
}

static void raise(struct pml_memory_peak *peak, bool higher, const struct pml_memory_levels *levels, uint32_t moment)
{
    if (higher)
        *peak = (struct pml_memory_peak){.at = *levels, .moment = moment};
}

void pml_levels_peaks(const struct pml_replay *replay, struct pml_memory_peak peaks[4])
{
    struct pml_memory_levels levels = replay->at_start;
    for (int i = 0; i < 4; i++)
        peaks[i] = (struct pml_memory_peak){.at = levels};
    for (uint32_t i = 0; i < replay->count; i++) {
        pml_levels_step(replay, i, &levels);
        raise(&peaks[0], levels.allocated > peaks[0].at.allocated, &levels, i + 1);
        raise(&peaks[1], levels.active > peaks[1].at.active, &levels, i + 1);
        raise(&peaks[2], levels.reserved > peaks[2].at.reserved, &levels, i + 1);
    }
    peaks[3] = (struct pml_memory_peak){.at = levels, .moment = replay->count};
}

static struct pml_memory_stretch begun(const struct pml_memory_levels *levels, uint32_t moment)
{
    return (struct pml_memory_stretch){
        .at = *levels, .least_active = levels->active, .most_reserved = levels->reserved, .moment = moment};
}

static void widen(struct pml_memory_stretch *stretch, const struct pml_memory_levels *levels, uint32_t moment)
{
    if (levels->active > stretch->at.active) {
        stretch->at = *levels;
        stretch->moment = moment;
    }
    if (levels->active < stretch->least_active)
        stretch->least_active = levels->active;
    if (levels->reserved > stretch->most_reserved)
        stretch->most_reserved = levels->reserved;
}

void pml_levels_stretches(const struct pml_replay *replay, const uint32_t *ends, size_t count,
                          struct pml_memory_stretch *stretches)
{
    struct pml_memory_levels levels = replay->at_start;
    uint32_t event = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t end = ends[i] < replay->count ? ends[i] : replay->count;
        if (i && event < end)
            pml_levels_step(replay, event++, &levels);
        stretches[i] = begun(&levels, event);
        while (event < end) {
            pml_levels_step(replay, event++, &levels);
            widen(&stretches[i], &levels, event);
        }
    }
}
