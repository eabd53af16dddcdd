/* A table of live blocks that have an owner: pointer to size and owner. No locks: the caller holds the device's. */
#ifndef PML_OWNED_H
#define PML_OWNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pml_owner;

struct pml_owned {
    uintptr_t pointer; /* 0: free slot */
    int64_t size;
    struct pml_owner *owner;
};

struct pml_owned_table {
    struct pml_owned *slot;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
};

/* Enter a block, in the place of the one that was there: `before`, whose owner is NULL if there was none. False when memory
 * runs out: nothing has changed. */
bool pml_owned_put(struct pml_owned_table *table, const void *pointer, int64_t size, struct pml_owner *owner,
                   struct pml_owned *before);
/* Remove a block; its owner is NULL if it was not there. */
struct pml_owned pml_owned_take(struct pml_owned_table *table, const void *pointer);
void pml_owned_clear(struct pml_owned_table *table);

#endif
