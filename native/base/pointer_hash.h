/* The hash of a pointer, for all tables by address. No state: any thread. */
#ifndef PML_POINTER_HASH_H
#define PML_POINTER_HASH_H

#include <stdint.h>

/* Fibonacci hashing: the low bits of an address are always the same, and all bits of it reach the high half. A table
 * takes what it needs from the 32 bits. */
static inline uint32_t pml_pointer_hash(const void *pointer)
{
    return (uint32_t)((uint64_t)(uintptr_t)pointer * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

#endif
