/* From events to allocations: which begin and end in the recording, and which were there before. See allocations.h. */
#include "snapshot/allocations.h"

#include "snapshot/addresses.h"
#include "snapshot/spans.h"

struct finding {
    struct pml_replay *replay;
    struct pml_addresses live;   /* address to allocation */
    bool frees_complete_at_once; /* the trace has no completed frees (`skip_actions`) */
};

static bool add(struct finding *finding, struct pml_allocation allocation, uint32_t *number)
{
    *number = (uint32_t)finding->replay->allocations.used;
    return finding->replay->allocations.used < PML_NO_ALLOCATION &&
           PML_PUSH(&finding->replay->allocations, allocation) &&
           pml_addresses_set(&finding->live, allocation.address, *number);
}

static struct pml_allocation made_by(const struct pml_event *event, uint32_t moment)
{
    return (struct pml_allocation){.address = event->address,
                                   .requested = event->size,
                                   .made = moment,
                                   .released = PML_NEVER,
                                   .freed = PML_NEVER,
                                   .stack = event->stack,
                                   .setting = pml_rows_setting_of(event)};
}

static void end(struct pml_allocation *allocation, uint32_t moment)
{
    allocation->freed = moment;
    if (allocation->released == PML_NEVER)
        allocation->released = moment;
}

static bool lose(struct pml_replay *replay, uint32_t number, uint32_t moment)
{
    end(&replay->allocations.items[number], moment);
    if (moment && replay->of_event.used == replay->count && replay->of_event.items[moment - 1] == number &&
        pml_rows_action_of(&replay->events[moment - 1]) != PML_ALLOC)
        return true; /* the last event is its own, and ends it */
    return PML_PUSH(&replay->lost, ((struct pml_loss){moment, number}));
}

static bool allocated(struct finding *finding, const struct pml_event *event, uint32_t moment, uint32_t *number)
{
    uint64_t old;
    if (pml_addresses_take(&finding->live, event->address, &old) && !lose(finding->replay, (uint32_t)old, moment))
        return false;
    return add(finding, made_by(event, moment), number);
}

/* An event of an allocation that was made before the recording: who made it is not known. */
static bool before(struct finding *finding, const struct pml_event *event, uint32_t released, uint32_t *number)
{
    struct pml_allocation allocation = made_by(event, PML_BEFORE);
    allocation.stack = 0;
    allocation.released = released;
    return add(finding, allocation, number);
}

static bool freed(struct finding *finding, const struct pml_event *event, uint32_t moment, uint32_t *number)
{
    bool completed = pml_rows_action_of(event) == PML_FREE_COMPLETED || finding->frees_complete_at_once;
    uint64_t found = 0;
    if (pml_addresses_get(&finding->live, event->address, &found))
        *number = (uint32_t)found;
    else if (!before(finding, event, pml_rows_action_of(event) == PML_FREE_COMPLETED ? PML_BEFORE : PML_NEVER, number))
        return false;
    struct pml_allocation *allocation = &finding->replay->allocations.items[*number];
    if (pml_rows_action_of(event) == PML_FREE_REQUESTED && allocation->released == PML_NEVER)
        allocation->released = moment;
    if (completed) {
        end(allocation, moment);
        pml_addresses_take(&finding->live, event->address, &found);
    }
    return true;
}

static bool follow(struct finding *finding)
{
    struct pml_replay *replay = finding->replay;
    for (uint32_t i = 0; i < replay->count; i++) {
        const struct pml_event *event = &replay->events[i];
        uint32_t number = PML_NO_ALLOCATION;
        enum pml_action action = pml_rows_action_of(event);
        bool fine = action == PML_ALLOC ? allocated(finding, event, i + 1, &number)
                    : action == PML_FREE_REQUESTED || action == PML_FREE_COMPLETED
                        ? freed(finding, event, i + 1, &number)
                        : true;
        if (!fine)
            return false;
        replay->of_event.items[i] = number;
    }
    replay->of_event.used = replay->count; /* complete: what is lost may be looked up */
    return true;
}

/* ---- what is there at the end ---- */

static bool meet_block(struct finding *finding, const struct pml_block *block, uint32_t setting)
{
    struct pml_replay *replay = finding->replay;
    uint64_t found;
    uint32_t number;
    replay->in_file.active += block->size;
    replay->in_file.allocated += block->state == PML_BLOCK_LIVE ? block->size : 0;
    if (!pml_addresses_get(&finding->live, block->address, &found)) {
        struct pml_allocation allocation = {.address = block->address,
                                            .requested = block->requested,
                                            .released = PML_NEVER,
                                            .freed = PML_NEVER,
                                            .stack = block->stack,
                                            .setting = setting};
        if (!add(finding, allocation, &number))
            return false;
        found = number;
    }
    struct pml_allocation *allocation = &replay->allocations.items[found];
    allocation->size = block->size;
    allocation->flags |= PML_SIZE_KNOWN;
    if (block->state == PML_BLOCK_PENDING && allocation->released == PML_NEVER)
        allocation->released = allocation->made == PML_BEFORE ? PML_BEFORE : replay->count;
    return true;
}

static bool meet_segment(struct finding *finding, const struct pml_segment *segment)
{
    struct pml_replay *replay = finding->replay;
    const struct pml_block *blocks = replay->rows->blocks.items + segment->first_block;
    struct pml_memory_span span = {segment->address, segment->address + segment->size, segment->setting,
                                   segment->expandable};
    replay->in_file.reserved += segment->size;
    for (uint32_t i = 0; i < segment->blocks; i++)
        if (blocks[i].state != PML_BLOCK_FREE && !meet_block(finding, &blocks[i], segment->setting))
            return false;
    return pml_spans_add(&replay->spans, span);
}

/* What the trace has not freed but is not there: its end was not recorded. */
static bool end_the_lost(struct pml_replay *replay)
{
    for (size_t i = 0; replay->has_segments && i < replay->allocations.used; i++) {
        const struct pml_allocation *allocation = &replay->allocations.items[i];
        if (allocation->freed == PML_NEVER && !(allocation->flags & PML_SIZE_KNOWN) &&
            !lose(replay, (uint32_t)i, replay->count))
            return false;
    }
    return true;
}

static bool frees_are_never_completed(const struct pml_replay *replay)
{
    for (uint32_t i = 0; i < replay->count; i++)
        if (pml_rows_action_of(&replay->events[i]) == PML_FREE_COMPLETED)
            return false;
    return true;
}

bool pml_allocations_find(struct pml_replay *replay, int32_t device)
{
    struct finding finding = {.replay = replay, .frees_complete_at_once = frees_are_never_completed(replay)};
    bool fine = PML_RESERVE(&replay->of_event, replay->count) && follow(&finding);
    for (size_t i = 0; fine && i < replay->rows->segments.used; i++)
        if (replay->rows->segments.items[i].device == device)
            fine = meet_segment(&finding, &replay->rows->segments.items[i]);
    fine = fine && end_the_lost(replay);
    pml_addresses_drop(&finding.live);
    return fine;
}
