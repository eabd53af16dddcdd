/* What expandable segments would have reserved. */
#ifndef PML_EXPANDABLE_H
#define PML_EXPANDABLE_H

#include "snapshot/replayed.h"

/* The bytes at each of `count` rising moments. False: no memory. */
bool pml_expandable_reserved(const struct pml_replay *replay, const uint32_t *moments, size_t count,
                             uint64_t *reserved);

#endif
