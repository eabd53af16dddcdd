/* The frames of a snapshot and the stacks made of them, each kept once. Frame and stack numbers never change; stack 0
 * is the empty one. Owns both. No locks.
 */
#ifndef PML_STACKS_H
#define PML_STACKS_H

#include "snapshot/index.h"
#include "snapshot/vector.h"

struct pml_frame_stack_frame {
    uint32_t function; /* names (names.h) */
    uint32_t file;
    int32_t line;
};

struct pml_frame_stack_range {
    uint64_t first; /* in `members` */
    uint32_t count; /* the innermost frame first */
    uint32_t unused;
};

struct pml_stacks {
    PML_VECTOR(struct pml_frame_stack_frame) frames;
    PML_VECTOR(struct pml_frame_stack_range) stacks;
    PML_VECTOR(uint32_t) members; /* frame numbers */
    struct pml_index frame_index;
    struct pml_index stack_index;
};

/* False: no memory. */
bool pml_stacks_init(struct pml_stacks *stacks);
/* The numbers, or PML_INDEX_NONE without memory. */
uint32_t pml_stacks_frame(struct pml_stacks *stacks, struct pml_frame_stack_frame frame);
uint32_t pml_stacks_stack(struct pml_stacks *stacks, const uint32_t *frames, uint32_t count);
/* The stack `number` with more frames at its outer end. */
uint32_t pml_stacks_extended(struct pml_stacks *stacks, uint32_t number, const uint32_t *frames, uint32_t count);
void pml_stacks_drop(struct pml_stacks *stacks);

#endif
