/* What each owner holds (see owner_bytes.h). */
#include "holders/owner_bytes.h"

#include <stdlib.h>

_Atomic(struct pml_owner_bytes *) pml_owner_bytes_block[PML_MAX_DEVICES][PML_OWNER_BYTES_BLOCKS];

struct pml_owner_bytes *pml_owner_bytes_make_block(int device, int index)
{
    int block = 25 - __builtin_clz((unsigned)index + PML_OWNER_BYTES_FIRST);
    int count = PML_OWNER_BYTES_FIRST << block;
    struct pml_owner_bytes *owner_bytes = calloc((size_t)count, sizeof *owner_bytes);
    if (!owner_bytes)
        return NULL;
    for (int i = 0; i < count; i++)
        owner_bytes[i].index = count - PML_OWNER_BYTES_FIRST + i;
    atomic_store_explicit(&pml_owner_bytes_block[device][block], owner_bytes, memory_order_release);
    return pml_owner_bytes_of(device, index);
}

void pml_owner_bytes_renew(int index)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        struct pml_owner_bytes *owner_bytes = index >= 0 ? pml_owner_bytes_of(d, index) : NULL;
        if (owner_bytes)
            owner_bytes->young_run = 0;
    }
}

int pml_owner_bytes_end(int device)
{
    int block = PML_OWNER_BYTES_BLOCKS;
    while (block > 0 && !pml_owner_bytes_block[device][block - 1])
        block--;
    return (PML_OWNER_BYTES_FIRST << block) - PML_OWNER_BYTES_FIRST;
}
