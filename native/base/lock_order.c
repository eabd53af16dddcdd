/* The check of the locks' order (see lock_order.h): each thread's list of the locks that it holds. */
#include "base/lock_order.h"

#ifdef PML_CHECK_LOCKS

#define MOST_HELD 128 /* a fork holds all: two a device, sixteen shards, and five */
#define PLACE(rank, number) ((int)(rank) << 8 | (number))

static _Thread_local struct {
    int count;
    int place[MOST_HELD]; /* ascending */
} owner_bytes;

void pml_lock_order_taken(enum pml_lock_rank rank, int number)
{
    int place = PLACE(rank, number);
    if (owner_bytes.count == MOST_HELD || (owner_bytes.count && owner_bytes.place[owner_bytes.count - 1] >= place))
        __builtin_trap();
    owner_bytes.place[owner_bytes.count++] = place;
}

void pml_lock_order_given(enum pml_lock_rank rank, int number)
{
    int place = PLACE(rank, number), kept = 0;
    for (int i = 0; i < owner_bytes.count; i++)
        if (owner_bytes.place[i] != place)
            owner_bytes.place[kept++] = owner_bytes.place[i];
    if (kept != owner_bytes.count - 1)
        __builtin_trap();
    owner_bytes.count = kept;
}

#endif
