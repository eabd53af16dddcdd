/* Live blocks with owners (see owned.h): open addressing, linear probing, deletion by shifting back. */
#include "owned.h"

#include <stdlib.h>

#define FIRST_CAPACITY 256

static size_t home_of(const struct pml_owned_table *table, uintptr_t pointer)
{
    uint64_t h = (uint64_t)pointer * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(h >> 32) & (table->capacity - 1);
}

/* The slot that holds the pointer, or the free one where it belongs. The table is never full. */
static struct pml_owned *probe(const struct pml_owned_table *table, uintptr_t pointer)
{
    size_t i = home_of(table, pointer);
    while (table->slot[i].pointer != 0 && table->slot[i].pointer != pointer)
        i = (i + 1) & (table->capacity - 1);
    return &table->slot[i];
}

/* To twice the room, or to half of it where most of it is free: memory follows the live blocks. */
static bool resize(struct pml_owned_table *table, size_t capacity)
{
    struct pml_owned_table other = {.capacity = capacity, .used = table->used};
    other.slot = calloc(capacity, sizeof *other.slot);
    if (!other.slot)
        return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slot[i].pointer != 0)
            *probe(&other, table->slot[i].pointer) = table->slot[i];
    free(table->slot);
    *table = other;
    return true;
}

bool pml_owned_put(struct pml_owned_table *table, const void *pointer, int64_t size, struct pml_owner *owner,
                   struct pml_owned *before)
{
    if (table->used * 4 >= table->capacity && !resize(table, table->capacity ? table->capacity * 2 : FIRST_CAPACITY))
        return false;
    struct pml_owned *slot = probe(table, (uintptr_t)pointer);
    *before = *slot;
    table->used += slot->pointer == 0;
    *slot = (struct pml_owned){(uintptr_t)pointer, size, owner};
    return true;
}

/* Close the gap that a removed entry leaves, so that probing still finds what lies behind it. */
static void shift_back(struct pml_owned_table *table, size_t gap)
{
    size_t mask = table->capacity - 1;
    for (size_t i = (gap + 1) & mask; table->slot[i].pointer != 0; i = (i + 1) & mask) {
        size_t home = home_of(table, table->slot[i].pointer);
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            table->slot[gap] = table->slot[i];
            gap = i;
        }
    }
    table->slot[gap] = (struct pml_owned){0, 0, NULL};
}

struct pml_owned pml_owned_take(struct pml_owned_table *table, const void *pointer)
{
    struct pml_owned none = {0, 0, NULL};
    if (table->used == 0)
        return none;
    struct pml_owned *slot = probe(table, (uintptr_t)pointer);
    if (slot->pointer == 0)
        return none;
    struct pml_owned taken = *slot;
    shift_back(table, (size_t)(slot - table->slot));
    table->used--;
    if (table->capacity > FIRST_CAPACITY && table->used * 32 < table->capacity)
        resize(table, table->capacity / 4);
    return taken;
}

void pml_owned_clear(struct pml_owned_table *table)
{
    free(table->slot);
    *table = (struct pml_owned_table){.slot = NULL};
}
