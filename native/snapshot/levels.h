/* The memory levels from event to event. */
#ifndef PML_LEVELS_H
#define PML_LEVELS_H

#include "snapshot/replayed.h"

/* How an event changes the levels. */
void pml_levels_step(const struct pml_replay *replay, uint32_t event, struct pml_memory_levels *levels);
void pml_levels_start(struct pml_replay *replay);
struct pml_memory_peak {
    struct pml_memory_levels at; /* then */
    uint32_t moment;             /* the first one with the highest value */
    uint32_t unused;
};
/* The moments of the highest allocated, active and reserved bytes, and the end. */
void pml_levels_peaks(const struct pml_replay *replay, struct pml_memory_peak peaks[4]);

/* A stretch of moments: what there was when most was active, and the extremes. 48 bytes, read by Python. */
struct pml_memory_stretch {
    struct pml_memory_levels at;
    uint64_t least_active;
    uint64_t most_reserved;
    uint32_t moment;
    uint32_t unused;
};
/* Stretch i ends with the moment `ends[i]`, which rise; the first begins with moment 0. */
void pml_levels_stretches(const struct pml_replay *replay, const uint32_t *ends, size_t count,
                          struct pml_memory_stretch *stretches);

#endif
