/* The sizes of blocks. */
#ifndef PML_SIZES_H
#define PML_SIZES_H

#include "snapshot/replayed.h"

/* The bytes that the allocator looks for. */
uint64_t pml_sizes_rounded(const struct pml_rules *rules, uint64_t requested);
/* Set the size of every allocation. False: no memory. */
bool pml_sizes_find(struct pml_replay *replay);

#endif
