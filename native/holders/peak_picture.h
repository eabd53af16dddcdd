/* Pictures: which lines hold a device's memory at its peak while functions of one profiler, or of several that share
 * the picture, run. Taken in constant time per event:
 *
 * Each device of a picture has an *epoch*, incremented at every new maximum, and each owner has its bytes at the
 * maximum (`pml_bytes_at_peak`) with their epoch. They are updated before the owner's bytes change; so at any later
 * time an owner had those bytes at the maximum, or, if their epoch is older, what it holds now.
 *
 * Threads: what belongs to a device needs that device's lock (ledger.h); the rest needs the GIL.
 */
#ifndef PML_PEAK_PICTURE_H
#define PML_PEAK_PICTURE_H

#include <stdatomic.h>

#include "meter/meter.h"
#include "holders/owners.h"
#include "base/series.h"

/* Bytes of a line; `code` is the code object's address, only to be compared, NULL for autograd's and at no line. */
struct pml_holder {
    const void *code;
    int line;
    enum pml_owner_kind kind;
    int64_t bytes;
};

struct pml_holder_list {
    int count;
    struct pml_holder *holder;
};

struct pml_bytes_at_peak {
    int64_t bytes;
    uint64_t epoch;
};

/* One device in one picture. */
struct pml_peak {
    int64_t peak; /* -1: nothing seen */
    uint64_t epoch;
    bool kept;            /* the holders are in `list`, not in `at_peak` */
    struct pml_holder at; /* the line that ran */
    int at_peak_capacity;
    struct pml_bytes_at_peak *at_peak; /* by the owner's index */
    struct pml_holder_list list;
    struct pml_series series;
};

struct pml_peak_picture {
    uint64_t since;      /* `pml_moment` at its first start: the blocks of older owners are elsewhere. Who sees the
                          * picture among the active ones sees this moment or a later one */
    int group;           /* its bit in `pml_code.groups` while it is active, or -1 */
    int recorders;       /* how many record */
    _Atomic bool failed; /* memory ran out, or too many profilers ran: figures are incomplete */
    _Atomic int open;    /* frames that count */
    struct pml_peak *device[PML_MAX_DEVICES];
    struct pml_failures *failures; /* failures.c */
};

/* An owner's bytes are about to change from `bytes`. */
void pml_peak_picture_before_change(struct pml_peak_picture *picture, int device, int index, int64_t bytes);
/* Before the first value of a device that the picture has not seen: the level that it comes from. */
void pml_peak_picture_begin(struct pml_peak_picture *picture, int device, int64_t level);
/* The device's value now, while functions run that the picture is of; true if it is a new maximum. `owner` may be NULL.
 */
bool pml_peak_picture_observe(struct pml_peak_picture *picture, int device, int64_t value,
                              const struct pml_owner *owner);

/* What an owner held at the peak, if it holds `bytes` now. */
int64_t pml_peak_picture_bytes(const struct pml_peak *peak, int index, int64_t bytes);

/* The line that a picture charges for an owner (NULL: none). */
struct pml_holder pml_peak_picture_holder(const struct pml_peak_picture *picture, const struct pml_owner *owner);
/* Append what the owner's line is in a picture. Nothing if it has none there; false when memory runs out. */
bool pml_peak_picture_append(struct pml_holder_list *list, const struct pml_peak_picture *picture,
                             const struct pml_owner *owner, int64_t bytes);

bool pml_peak_picture_copy_list(struct pml_holder_list *to, const struct pml_holder_list *from);

/* The holders at a device's peak, and those of its live bytes now. The device is locked; false when memory runs out. */
bool pml_peak_picture_list_peak(const struct pml_peak_picture *picture, int device, struct pml_holder_list *list);
bool pml_peak_picture_list_live(int device, const struct pml_peak_picture *picture, struct pml_holder_list *list);

void pml_peak_picture_forget(struct pml_peak_picture *picture, int device);

#endif
