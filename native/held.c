/* What each owner holds (see held.h). */
#include "held.h"

#include <stdlib.h>

_Atomic(struct pml_held *) pml_held_block[PML_MAX_DEVICES][PML_HELD_BLOCKS];

PML_SELDOM struct pml_held *pml_held_make_block(int device, int index)
{
    int block = 25 - __builtin_clz((unsigned)index + PML_HELD_FIRST);
    int count = PML_HELD_FIRST << block;
    struct pml_held *held = calloc((size_t)count, sizeof *held);
    if (!held)
        return NULL;
    for (int i = 0; i < count; i++)
        held[i].index = count - PML_HELD_FIRST + i;
    atomic_store_explicit(&pml_held_block[device][block], held, memory_order_release);
    return pml_held_of(device, index);
}

int pml_held_end(int device)
{
    int block = PML_HELD_BLOCKS;
    while (block > 0 && !pml_held_block[device][block - 1])
        block--;
    return (PML_HELD_FIRST << block) - PML_HELD_FIRST;
}
