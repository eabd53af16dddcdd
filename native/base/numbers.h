/* Small arithmetic that several units share; knows nothing of them. Any thread. */
#ifndef PML_NUMBERS_H
#define PML_NUMBERS_H

#include <stdatomic.h>
#include <stdint.h>

static inline int64_t pml_numbers_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Adds to a value that only one thread at a time changes: no bus lock is needed. */
static inline void pml_numbers_add_unshared(_Atomic int64_t *value, int64_t amount)
{
    int64_t now = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, now + amount, memory_order_relaxed);
}

#endif
