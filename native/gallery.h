/* The gallery: all pictures that are being taken, each in the place of its group's bit.
 *
 * Threads: with the GIL pictures come, and with all devices locked too (holders.h) they go; who has locked one may look at all.
 */
#ifndef PML_GALLERY_H
#define PML_GALLERY_H

#include "picture.h"

extern struct pml_picture *pml_gallery[PML_MAX_GROUPS];
extern _Atomic uint64_t pml_gallery_active; /* a bit for each picture there is */

static inline uint64_t pml_gallery_groups(void)
{
    return atomic_load_explicit(&pml_gallery_active, memory_order_acquire);
}

static inline bool pml_gallery_recording(void)
{
    return pml_gallery_groups() != 0;
}

/* The next picture of a set of groups, taken out of it. */
static inline struct pml_picture *pml_gallery_next(uint64_t *groups)
{
    int group = __builtin_ctzll(*groups);
    *groups &= *groups - 1;
    return pml_gallery[group];
}

/* Those of which functions run. */
uint64_t pml_gallery_open(void);

/* With the GIL. A picture is active while one of its recorders records. */
void pml_picture_start(struct pml_picture *picture);
void pml_picture_stop(struct pml_picture *picture);
void pml_picture_clear(struct pml_picture *picture);
/* A frame of the group `bit`s begins or ends to count. */
void pml_pictures_open(uint64_t groups);
void pml_pictures_close(uint64_t groups);
/* Memory ran out for something that these groups needed. */
void pml_pictures_fail(uint64_t groups);

/* A copy of what the device's picture shows; false where there is none, or memory runs out (then `failed`). The caller
 * frees the holders. */
bool pml_picture_copy(struct pml_picture *picture, int device, struct pml_peak *copy);

/* Live bytes by line, now. The device is locked. */
bool pml_holders_now(int device, const struct pml_picture *picture, struct pml_holder_list *list);
/* Nobody will ask for the bytes of the owner of this index again. All devices are locked. */
bool pml_holders_unused(int index);

#endif
