/* Allocations that failed: which line asked, for how much, and who held what then.
 *
 * Threads: notes come from any thread, an accelerator's with the allocator's lock held; the rest needs the GIL. One
 * mutex, a leaf below the device's.
 */
#ifndef PML_FAILURES_H
#define PML_FAILURES_H

#include "holders/peak_picture.h"

/* Of a picture at most this many are kept, the first ones; the others are counted. */
#define PML_MOST_FAILURES 32

struct pml_failure {
    uint64_t number; /* from 1 on, in the whole process */
    int device;
    int64_t asked; /* bytes, as are all others; -1: not known */
    int64_t allocated;
    int64_t active;
    int64_t reserved;
    int64_t unused; /* what the device said was free then, of `total` */
    int64_t total;
    struct pml_holder at;
    struct pml_holder_list list;
};

/* An allocation failed for good. -1 for totals that the meter knows best. All active pictures take it, also while none
 * of their functions runs. */
void pml_failures_note(int device, int64_t asked, int64_t allocated, int64_t reserved);
/* The number of the last one on the calling thread; 0: none. */
uint64_t pml_failures_last(void);
/* What the device last reported to this thread about its memory; the next failure uses it. */
void pml_failures_note_capacity(int64_t unused, int64_t total);

int pml_failures_count(const struct pml_peak_picture *picture);
/* The i-th that was kept; false when there is none. It stays the picture's. */
bool pml_failures_get(const struct pml_peak_picture *picture, int i, struct pml_failure *failure);
void pml_failures_clear(struct pml_peak_picture *picture);

void pml_failures_lock(void);
void pml_failures_unlock(void);

#endif
