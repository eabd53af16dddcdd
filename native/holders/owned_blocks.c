/* Live blocks with owners (see owned_blocks.h). */
#include "holders/owned_blocks.h"

#include <stdlib.h>

/* With live blocks only, in four to eight times the room that they need: memory follows them. */
bool pml_owned_blocks_make_room(struct pml_owned_blocks *table)
{
    struct pml_owned_blocks other = {
        .capacity = PML_OWNED_BLOCKS_FIRST_CAPACITY, .used = table->used, .named = table->used};
    while (other.capacity <= table->used * 4)
        other.capacity *= 2;
    other.slot = calloc(other.capacity, sizeof *other.slot);
    if (!other.slot)
        return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slot[i].size)
            *pml_owned_blocks_probe(&other, (const void *)table->slot[i].pointer) = table->slot[i];
    free(table->slot);
    *table = other;
    return true;
}

void pml_owned_blocks_clear(struct pml_owned_blocks *table)
{
    free(table->slot);
    *table = (struct pml_owned_blocks){.slot = NULL};
}
