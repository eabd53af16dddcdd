/* What each owner holds on each device, by the owner's number; that of `pml_owners_nobody` is 0.
 *
 * Threads: changed with the device locked (ledger.h); read from any thread at any time, since entries are never moved
 * or freed.
 */
#ifndef PML_OWNER_BYTES_H
#define PML_OWNER_BYTES_H

#include "meter/meter.h"

struct pml_owner_bytes {
    _Atomic int64_t live;
    _Atomic int64_t young;      /* of these: what was made in the run `young_run` */
    _Atomic uint64_t young_run; /* the last one that allocated; 0: none has */
    _Atomic uint64_t run;       /* counts how often its line began; needs the GIL to change */
    uint64_t published;         /* the device's `peaks` when its bytes were last published */
    int index;                  /* the owner's number */
    _Atomic int64_t ended;      /* freed as functions ended, ever */
    int64_t ended_before;       /* until its line last began; needs the GIL */
    int64_t after;              /* freed while no function was watched, */
    uint64_t after_watch;       /* after the watch of this number (ledger.h) */
};

/* Blocks of 64, 128, 256 and so on: block b begins at number 2^(6 + b) - 64. */
#define PML_OWNER_BYTES_FIRST 64
#define PML_OWNER_BYTES_BLOCKS 25

extern _Atomic(struct pml_owner_bytes *) pml_owner_bytes_block[PML_MAX_DEVICES][PML_OWNER_BYTES_BLOCKS];

#define PML_NOBODY 0

/* NULL if the owner never held anything there. */
static inline struct pml_owner_bytes *pml_owner_bytes_of(int device, int index)
{
    unsigned number = (unsigned)index + PML_OWNER_BYTES_FIRST, power = 31 ^ (unsigned)__builtin_clz(number);
    struct pml_owner_bytes *block =
        atomic_load_explicit(&pml_owner_bytes_block[device][power - 6], memory_order_acquire);
    return block ? block + (number - (1u << power)) : NULL;
}

/* NULL when memory runs out. The device is locked. */
struct pml_owner_bytes *pml_owner_bytes_make_block(int device, int index);

/* The same as `of`, made if it is not there. */
static inline struct pml_owner_bytes *pml_owner_bytes_make(int device, int index)
{
    struct pml_owner_bytes *owner_bytes = pml_owner_bytes_of(device, index);
    return owner_bytes ? owner_bytes : pml_owner_bytes_make_block(device, index);
}

/* The owner of this number is another one from now on, and holds nothing. All devices are locked. */
void pml_owner_bytes_renew(int index);

/* All numbers that held anything on the device are below this one. */
int pml_owner_bytes_end(int device);

static inline int64_t pml_owner_bytes_live(const struct pml_owner_bytes *owner_bytes)
{
    return owner_bytes ? atomic_load_explicit(&owner_bytes->live, memory_order_relaxed) : 0;
}

#endif
