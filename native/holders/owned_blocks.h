/* A table of live blocks that have an owner: pointer to size, and to what the owner holds (owner_bytes.h). No locks:
 * the caller holds the device's. Open addressing, linear probing; a freed block leaves its slot to the next one at its
 * address, since allocators reuse addresses, until the table is rebuilt.
 */
#ifndef PML_OWNED_BLOCKS_H
#define PML_OWNED_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pointer_hash.h"

struct pml_owner_bytes;

struct pml_owned_block {
    uintptr_t pointer; /* 0: free slot */
    int64_t size;      /* 0: the block is gone */
    struct pml_owner_bytes *owner_bytes;
    uint64_t run; /* of its line, in which it was made */
};

struct pml_owned_blocks {
    struct pml_owned_block *slot;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
    size_t named; /* slots with a pointer */
};

#define PML_OWNED_BLOCKS_FIRST_CAPACITY 1024 /* in a training step addresses vary: rebuilding is rare */

static inline bool pml_owned_blocks_has_room(const struct pml_owned_blocks *table)
{
    return table->named * 2 < table->capacity;
}

/* Make room for one more address. False when memory runs out: nothing has changed. */
bool pml_owned_blocks_make_room(struct pml_owned_blocks *table);

/* The slot of the pointer, or the free one where it belongs. The table's capacity is not 0. */
static inline struct pml_owned_block *pml_owned_blocks_probe(const struct pml_owned_blocks *table, const void *pointer)
{
    size_t mask = table->capacity - 1;
    size_t i = pml_pointer_hash(pointer) & mask;
    while (table->slot[i].pointer != 0 && table->slot[i].pointer != (uintptr_t)pointer)
        i = (i + 1) & mask;
    return &table->slot[i];
}

/* The block's slot, or NULL. */
static inline struct pml_owned_block *pml_owned_blocks_find(const struct pml_owned_blocks *table, const void *pointer)
{
    struct pml_owned_block *slot = table->used ? pml_owned_blocks_probe(table, pointer) : NULL;
    return slot && slot->size ? slot : NULL;
}

/* What the slot of the pointer has from now on. */
static inline void pml_owned_blocks_set(struct pml_owned_blocks *table, struct pml_owned_block *slot,
                                        const void *pointer, int64_t size, struct pml_owner_bytes *owner_bytes,
                                        uint64_t run)
{
    table->named += slot->pointer == 0;
    table->used += (size_t)((size != 0) - (slot->size != 0));
    *slot = (struct pml_owned_block){(uintptr_t)pointer, size, owner_bytes, run};
}

/* After blocks have gone: what memory they leave over. */
static inline void pml_owned_blocks_give_back_room(struct pml_owned_blocks *table)
{
    if (table->used * 32 < table->capacity && table->capacity > PML_OWNED_BLOCKS_FIRST_CAPACITY)
        pml_owned_blocks_make_room(table);
}

void pml_owned_blocks_clear(struct pml_owned_blocks *table);

#endif
