/* A lock for short critical sections: an atomic exchange acquires it, a plain store releases it. A waiting thread
 * yields first, and then sleeps between attempts, so that a thread of lower priority can continue.
 */
#ifndef PML_LOCK_H
#define PML_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

struct pml_lock {
    _Atomic bool taken;
};

void pml_lock_wait(struct pml_lock *lock);

static inline bool pml_lock_try(struct pml_lock *lock)
{
    return !atomic_exchange_explicit(&lock->taken, true, memory_order_acquire);
}

static inline void pml_lock_take(struct pml_lock *lock)
{
    if (!pml_lock_try(lock))
        pml_lock_wait(lock);
}

static inline void pml_lock_give(struct pml_lock *lock)
{
    atomic_store_explicit(&lock->taken, false, memory_order_release);
}

#endif
