/* Free pieces of memory ordered by size, then by address: the smallest that is large enough is found in logarithmic
 * time.
 *
 * A skip list. Owns its nodes. No locks.
 */
#ifndef PML_GAPSET_H
#define PML_GAPSET_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/vector.h"

#define PML_GAPSET_HEIGHT 12

struct pml_gapset_node {
    uint64_t size;
    uint64_t start;
    uint32_t next[PML_GAPSET_HEIGHT]; /* node numbers; 0: the end */
};

struct pml_gapset {
    PML_VECTOR(struct pml_gapset_node) nodes; /* the first one is the head */
    uint32_t spare;                           /* removed nodes, linked by next[0] */
    uint32_t random;
};

/* False: no memory. */
bool pml_gapset_add(struct pml_gapset *set, uint64_t start, uint64_t size);
bool pml_gapset_remove(struct pml_gapset *set, uint64_t start, uint64_t size);
/* The smallest piece of at least this size; false: none. */
bool pml_gapset_find(const struct pml_gapset *set, uint64_t size, uint64_t *start, uint64_t *found);
void pml_gapset_drop(struct pml_gapset *set);

#endif
