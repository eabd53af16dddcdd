/* From a pickle's root to what a memory snapshot is: traces by device, segments, and the allocator's settings. */
#ifndef PML_CONTENTS_H
#define PML_CONTENTS_H

#include "snapshot/reading.h"

#define PML_HOST (-1)

/* Consecutive events of one device. */
struct pml_trace {
    int32_t device; /* PML_HOST: pinned memory */
    uint64_t first;
    uint64_t count;
};

/* How PyTorch's caching allocator rounds and splits. */
struct pml_rules {
    bool expandable;
    uint64_t largest_split; /* blocks of at least this size are not split */
    uint64_t divisions[16]; /* of powers of two, from 1 MiB on; 0: none */
};

struct pml_contents {
    PML_VECTOR(struct pml_trace) traces; /* one a device that has events or segments */
    bool has_segments;
    bool has_traces;
    struct pml_rules rules;
};

/* False: this is no snapshot. `*failed`: no memory. */
bool pml_contents_find(struct pml_contents *contents, struct pml_pickle *pickle, bool *failed);
void pml_contents_drop(struct pml_contents *contents);
/* The value of a key of a dict; false: there is none. */
bool pml_contents_item(const struct pml_pickle *pickle, pml_value dict, const char *key, pml_value *value);

#endif
