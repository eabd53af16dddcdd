/* A set of numbered things, found by what they contain: the way in which equal strings, frames and stacks are kept
 * once.
 *
 * It stores numbers and hashes; what is equal, the caller says. Owns its table. No locks.
 */
#ifndef PML_INDEX_H
#define PML_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PML_INDEX_NONE UINT32_MAX

struct pml_index_slot {
    uint32_t hash;
    uint32_t number; /* plus one; 0: free */
};

struct pml_index {
    struct pml_index_slot *slots;
    size_t count; /* a power of two, or 0 */
    size_t used;
};

/* The number that is equal to `what`, or PML_INDEX_NONE. */
uint32_t pml_index_find(const struct pml_index *index, uint64_t hash,
                        bool (*same)(const void *owner, uint32_t number, const void *what), const void *owner,
                        const void *what);
/* Enter a number that is not in it. False: no memory. */
bool pml_index_add(struct pml_index *index, uint64_t hash, uint32_t number);
void pml_index_drop(struct pml_index *index);

/* A hash of a value, mixed into that of what came before. */
static inline uint64_t pml_index_hash(uint64_t before, uint64_t value)
{
    uint64_t mixed = (before ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return mixed ^ (mixed >> 29);
}

#endif
