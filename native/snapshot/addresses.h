/* A map from addresses to 64-bit values, for what lives at an address now. Owns its table. No locks. */
#ifndef PML_ADDRESSES_H
#define PML_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pml_address_slot {
    uint64_t address;
    uint64_t value; /* plus one; 0: free */
};

struct pml_addresses {
    struct pml_address_slot *slots;
    size_t count; /* a power of two, or 0 */
    size_t used;
};

/* Values are below UINT64_MAX. False: no memory. */
bool pml_addresses_set(struct pml_addresses *map, uint64_t address, uint64_t value);
/* Whether there is one; then it is in `*value`. */
bool pml_addresses_get(const struct pml_addresses *map, uint64_t address, uint64_t *value);
/* The same, and take it out. */
bool pml_addresses_take(struct pml_addresses *map, uint64_t address, uint64_t *value);
void pml_addresses_drop(struct pml_addresses *map);

#endif
