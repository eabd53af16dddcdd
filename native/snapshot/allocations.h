/* From events to allocations: which begin and end in the recording, and which were there before. */
#ifndef PML_ALLOCATIONS_H
#define PML_ALLOCATIONS_H

#include "snapshot/replayed.h"

/* Fill `allocations`, `of_event`, `spans` and `lost`. False: no memory. */
bool pml_allocations_find(struct pml_replay *replay, int32_t device);

#endif
