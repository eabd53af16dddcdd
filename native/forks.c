/* All locks around a fork (see forks.h), in their order (lock_order.h). */
#include "forks.h"

#include "blocks.h"
#include "failures.h"
#include "holders.h"
#include "owners.h"
#include "pending.h"
#include "places.h"
#include "saved.h"

void pml_forks_before(void)
{
    pml_saved_lock();
    pml_holders_lock_all();
    pml_failures_lock();
    pml_pending_lock();
    pml_owners_lock();
    pml_places_lock();
    pml_blocks_lock_all();
}

void pml_forks_after(void)
{
    pml_blocks_unlock_all();
    pml_places_unlock();
    pml_owners_unlock();
    pml_pending_unlock();
    pml_failures_unlock();
    pml_holders_unlock_all();
    pml_saved_unlock();
}
