/* The frames of a snapshot and the stacks made of them. See stacks.h. */
#include "snapshot/stacks.h"

#include <string.h>

struct wanted {
    const uint32_t *frames;
    uint32_t count;
};

static bool same_frame(const void *owner, uint32_t number, const void *what)
{
    const struct pml_frame_stack_frame *a = &((const struct pml_stacks *)owner)->frames.items[number], *b = what;
    return a->function == b->function && a->file == b->file && a->line == b->line;
}

static bool same_stack(const void *owner, uint32_t number, const void *what)
{
    const struct pml_stacks *stacks = owner;
    const struct wanted *wanted = what;
    const struct pml_frame_stack_range *range = &stacks->stacks.items[number];
    return range->count == wanted->count &&
           !memcmp(stacks->members.items + range->first, wanted->frames, wanted->count * sizeof(uint32_t));
}

bool pml_stacks_init(struct pml_stacks *stacks)
{
    *stacks = (struct pml_stacks){0};
    uint32_t none = 0;
    return PML_RESERVE(&stacks->members, 1) && pml_stacks_stack(stacks, &none, 0) == 0;
}

uint32_t pml_stacks_frame(struct pml_stacks *stacks, struct pml_frame_stack_frame frame)
{
    uint64_t hash = pml_index_hash(pml_index_hash(pml_index_hash(0, frame.function), frame.file), (uint32_t)frame.line);
    uint32_t found = pml_index_find(&stacks->frame_index, hash, same_frame, stacks, &frame);
    if (found != PML_INDEX_NONE)
        return found;
    if (stacks->frames.used >= UINT32_MAX - 1 || !PML_PUSH(&stacks->frames, frame))
        return PML_INDEX_NONE;
    uint32_t number = (uint32_t)stacks->frames.used - 1;
    return pml_index_add(&stacks->frame_index, hash, number) ? number : PML_INDEX_NONE;
}

static uint64_t hash_of(const uint32_t *frames, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = pml_index_hash(hash, frames[i]);
    return hash;
}

static uint32_t add_stack(struct pml_stacks *stacks, const uint32_t *frames, uint32_t count, uint64_t hash)
{
    struct pml_frame_stack_range range = {.first = stacks->members.used, .count = count};
    if (stacks->stacks.used >= UINT32_MAX - 1 || !PML_RESERVE(&stacks->members, count) ||
        !PML_PUSH(&stacks->stacks, range))
        return PML_INDEX_NONE;
    memcpy(stacks->members.items + range.first, frames, count * sizeof(uint32_t));
    stacks->members.used += count;
    uint32_t number = (uint32_t)stacks->stacks.used - 1;
    return pml_index_add(&stacks->stack_index, hash, number) ? number : PML_INDEX_NONE;
}

uint32_t pml_stacks_stack(struct pml_stacks *stacks, const uint32_t *frames, uint32_t count)
{
    struct wanted wanted = {frames, count};
    uint64_t hash = hash_of(frames, count);
    uint32_t found = pml_index_find(&stacks->stack_index, hash, same_stack, stacks, &wanted);
    return found != PML_INDEX_NONE ? found : add_stack(stacks, frames, count, hash);
}

uint32_t pml_stacks_extended(struct pml_stacks *stacks, uint32_t number, const uint32_t *frames, uint32_t count)
{
    struct pml_frame_stack_range range = stacks->stacks.items[number];
    if (range.count > UINT32_MAX - count)
        return PML_INDEX_NONE;
    size_t total = (size_t)range.count + count;
    uint32_t *joined = malloc(total * sizeof *joined);
    if (!joined)
        return PML_INDEX_NONE;
    memcpy(joined, stacks->members.items + range.first, range.count * sizeof *joined);
    memcpy(joined + range.count, frames, count * sizeof *joined);
    uint32_t result = pml_stacks_stack(stacks, joined, (uint32_t)total);
    free(joined);
    return result;
}

void pml_stacks_drop(struct pml_stacks *stacks)
{
    PML_DROP(&stacks->frames);
    PML_DROP(&stacks->stacks);
    PML_DROP(&stacks->members);
    pml_index_drop(&stacks->frame_index);
    pml_index_drop(&stacks->stack_index);
}
