/* What each group of stacks (a line, a function) has allocated, held at most, and keeps. */
#ifndef PML_FIGURES_H
#define PML_FIGURES_H

#include "snapshot/replayed.h"

/* Of one group; group 0 has what was there before with no stack. 72 bytes, read by Python. */
struct pml_figures {
    uint64_t allocated; /* bytes allocated in the recording */
    uint64_t times;
    uint64_t peak; /* the most that was active at once */
    uint64_t live; /* active at the end */
    uint64_t live_blocks;
    uint64_t freed;      /* allocations with a lifetime */
    int64_t median_life; /* microseconds, or events where there are no times; -1: none */
    uint32_t peak_moment;
    uint32_t unused;
    uint64_t before; /* bytes that were there at the start */
};
/* `groups` has a group for each stack; `figures` has room for `count`. `lows`: for each group in turn, `stretches`
 * values: the least that was active in each of as many stretches (at least one) of equal length. False: no memory. */
bool pml_figures_find(const struct pml_replay *replay, const uint32_t *groups, size_t count, uint32_t stretches,
                      struct pml_figures *figures, uint64_t *lows);

#endif
