/* A clock that orders segments and allocations of all threads: it counts the segments that were opened.
 *
 * Threads: advanced with the GIL held; read from any thread.
 */
#ifndef PML_MOMENT_H
#define PML_MOMENT_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint64_t pml_moment;

static inline uint64_t pml_moment_now(void)
{
    return atomic_load_explicit(&pml_moment, memory_order_relaxed);
}

static inline uint64_t pml_moment_next(void)
{
    uint64_t next = pml_moment_now() + 1; /* the GIL is held: no other thread changes it */
    atomic_store_explicit(&pml_moment, next, memory_order_relaxed);
    return next;
}

#endif
