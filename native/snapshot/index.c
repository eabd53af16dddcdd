/* A set of numbered things, found by what they contain. See index.h. */
#include "snapshot/index.h"

#include <stdlib.h>

static size_t folded(uint64_t hash)
{
    return (uint32_t)(hash ^ (hash >> 32));
}

uint32_t pml_index_find(const struct pml_index *index, uint64_t hash,
                        bool (*same)(const void *owner, uint32_t number, const void *what), const void *owner,
                        const void *what)
{
    if (!index->count)
        return PML_INDEX_NONE;
    uint32_t short_hash = (uint32_t)folded(hash);
    size_t mask = index->count - 1;
    for (size_t i = short_hash & mask; index->slots[i].number; i = (i + 1) & mask)
        if (index->slots[i].hash == short_hash && same(owner, index->slots[i].number - 1, what))
            return index->slots[i].number - 1;
    return PML_INDEX_NONE;
}

static void put(struct pml_index_slot *slots, size_t mask, struct pml_index_slot entry)
{
    size_t i = entry.hash & mask;
    while (slots[i].number)
        i = (i + 1) & mask;
    slots[i] = entry;
}

static bool grow(struct pml_index *index)
{
    size_t count = index->count ? index->count * 2 : 64;
    struct pml_index_slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < index->count; i++)
        if (index->slots[i].number)
            put(slots, count - 1, index->slots[i]);
    free(index->slots);
    index->slots = slots;
    index->count = count;
    return true;
}

bool pml_index_add(struct pml_index *index, uint64_t hash, uint32_t number)
{
    if (number == UINT32_MAX || (index->used * 4 >= index->count * 3 && !grow(index)))
        return false;
    put(index->slots, index->count - 1, (struct pml_index_slot){(uint32_t)folded(hash), number + 1});
    index->used++;
    return true;
}

void pml_index_drop(struct pml_index *index)
{
    free(index->slots);
    *index = (struct pml_index){0};
}
