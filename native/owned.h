/* A table of live blocks that have an owner: pointer to size, and to what the owner holds (held.h). No locks: the caller
 * holds the device's. Open addressing, linear probing; a block that goes leaves its slot to the next one at its address, until
 * the table is made anew.
 */
#ifndef PML_OWNED_H
#define PML_OWNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pml_held;

struct pml_owned {
    uintptr_t pointer; /* 0: free slot */
    int64_t size;
    struct pml_held *held; /* NULL: the block is gone; allocators give out the same addresses again */
};

struct pml_owned_table {
    struct pml_owned *slot;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
    size_t named; /* slots with a pointer */
};

/* Make room for one more. False when memory runs out: nothing has changed. */
bool pml_owned_make_room(struct pml_owned_table *table);
/* After many have gone. */
void pml_owned_give_back_room(struct pml_owned_table *table);

/* The slot of the pointer, or the free one where it belongs. The table is never empty or full. */
static inline struct pml_owned *pml_owned_probe(const struct pml_owned_table *table, const void *pointer)
{
    size_t mask = table->capacity - 1;
    size_t i = (size_t)((uintptr_t)pointer * UINT64_C(0x9E3779B97F4A7C15) >> 32) & mask;
    while (table->slot[i].pointer != 0 && table->slot[i].pointer != (uintptr_t)pointer)
        i = (i + 1) & mask;
    return &table->slot[i];
}

/* The block's slot, or NULL. */
static inline struct pml_owned *pml_owned_find(const struct pml_owned_table *table, const void *pointer)
{
    struct pml_owned *slot = table->used ? pml_owned_probe(table, pointer) : NULL;
    return slot && slot->held ? slot : NULL;
}

/* The slot for a block; its `held` is not NULL if one was there. NULL when memory runs out. */
static inline struct pml_owned *pml_owned_slot(struct pml_owned_table *table, const void *pointer)
{
    bool room = table->named * 2 < table->capacity || pml_owned_make_room(table);
    return room ? pml_owned_probe(table, pointer) : NULL;
}

static inline void pml_owned_fill(struct pml_owned_table *table, struct pml_owned *slot, const void *pointer,
                                  int64_t size, struct pml_held *held)
{
    table->used += !slot->held;
    table->named += slot->pointer == 0;
    *slot = (struct pml_owned){(uintptr_t)pointer, size, held};
}

static inline void pml_owned_empty(struct pml_owned_table *table, struct pml_owned *slot)
{
    slot->held = NULL;
    table->used--;
    if (table->used * 32 < table->capacity)
        pml_owned_give_back_room(table);
}

void pml_owned_clear(struct pml_owned_table *table);

#endif
