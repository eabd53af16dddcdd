/* Waiting for a lock (see lock.h). */
#include "base/lock.h"

#include <sched.h>
#include <time.h>

enum { TRIES = 100, SLEEP_NS = 50000 };

void pml_lock_wait(struct pml_lock *lock)
{
    for (int i = 0; !pml_lock_try(lock); i++)
        if (i < TRIES)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}
