/* The check of the locks' order (see lock_order.h): each thread's list of the locks that it holds. */
#include "lock_order.h"

#ifdef PML_CHECK_LOCKS

#define MOST_HELD 128 /* a fork holds all: two a device, sixteen shards, and five */
#define PLACE(rank, number) ((int)(rank) << 8 | (number))

static _Thread_local struct {
    int count;
    int place[MOST_HELD]; /* ascending */
} held;

void pml_lock_order_taken(enum pml_lock_rank rank, int number)
{
    int place = PLACE(rank, number);
    if (held.count == MOST_HELD || (held.count && held.place[held.count - 1] >= place))
        __builtin_trap();
    held.place[held.count++] = place;
}

void pml_lock_order_given(enum pml_lock_rank rank, int number)
{
    int place = PLACE(rank, number), kept = 0;
    for (int i = 0; i < held.count; i++)
        if (held.place[i] != place)
            held.place[kept++] = held.place[i];
    if (kept != held.count - 1)
        __builtin_trap();
    held.count = kept;
}

#else

typedef int pml_lock_order_is_not_checked; /* a file is not empty */

#endif
