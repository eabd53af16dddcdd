/* The pictures that are being taken (see active_pictures.h). */
#include "holders/active_pictures.h"

struct pml_peak_picture *pml_active_pictures[PML_MAX_GROUPS];
_Atomic uint64_t pml_active_pictures_bits;

uint64_t pml_active_pictures_open(void)
{
    uint64_t open = 0;
    for (uint64_t left = pml_active_pictures_groups(); left;) {
        const struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (atomic_load_explicit(&picture->open, memory_order_relaxed) > 0)
            open |= UINT64_C(1) << picture->group;
    }
    return open;
}

void pml_active_pictures_fail(uint64_t groups)
{
    for (uint64_t left = groups; left;) {
        struct pml_peak_picture *picture = pml_active_pictures_next(&left);
        if (picture)
            picture->failed = true;
    }
}
