/* All pictures that are being taken, each at the index of its group's bit.
 *
 * Threads: adding a picture needs the GIL; removing it needs the GIL and every device lock (ledger.h); reading needs
 * any one device lock.
 */
#ifndef PML_ACTIVE_PICTURES_H
#define PML_ACTIVE_PICTURES_H

#include "holders/peak_picture.h"

extern struct pml_peak_picture *pml_active_pictures[PML_MAX_GROUPS];
extern _Atomic uint64_t pml_active_pictures_bits; /* a bit for each picture there is */

static inline uint64_t pml_active_pictures_groups(void)
{
    return atomic_load_explicit(&pml_active_pictures_bits, memory_order_acquire);
}

static inline bool pml_active_pictures_any(void)
{
    return pml_active_pictures_groups() != 0;
}

/* The next picture of a set of groups, taken out of it. */
static inline struct pml_peak_picture *pml_active_pictures_next(uint64_t *groups)
{
    int group = __builtin_ctzll(*groups);
    *groups &= *groups - 1;
    return pml_active_pictures[group];
}

/* Those of which functions run. */
uint64_t pml_active_pictures_open(void);
/* Memory ran out for something that these groups needed. */
void pml_active_pictures_fail(uint64_t groups);

#endif
