/* Columns that allocator events do not carry: values of PyTorch's allocator statistics, known only where a segment
 * begins and ends. Needs the GIL throughout.
 *
 * A column is an id given by `pml_extra_add`; ids are never taken back. Accelerators only: device slots 1 and up.
 */
#ifndef PML_EXTRA_H
#define PML_EXTRA_H

#include <stdbool.h>
#include <stdint.h>

#define PML_MAX_EXTRA 192

enum pml_extra_kind {
    PML_EXTRA_PEAK,  /* highest value within the segment */
    PML_EXTRA_LEVEL, /* value at the end of the segment */
    PML_EXTRA_COUNT, /* grows for ever: the amount added within the segment */
};

/* One window's share: for each device and column the running peak, or the count at the start. */
struct pml_marks {
    bool active;
    int devices;
    int capacity;
    int64_t *mark;
};

/* A new column's id, or -1 when there is no room for more. */
int pml_extra_add(enum pml_extra_kind kind);
int pml_extra_count(void);

/* A reading of one device: levels now, and for peak columns the highest value since the reading before. */
void pml_extra_sample(int device, const int64_t *level, const int64_t *peak);
bool pml_extra_known(int device);

/* Begin tracking; false when memory runs out (the marks are then inactive). */
bool pml_marks_begin(struct pml_marks *marks, int devices);
void pml_marks_stop(struct pml_marks *marks);
void pml_marks_free(struct pml_marks *marks);
/* Take in the last reading of a device. */
void pml_marks_raise(struct pml_marks *marks, int device);
void pml_marks_absorb(struct pml_marks *outer, const struct pml_marks *inner);
/* The column's value for a segment that ends now. */
int64_t pml_marks_value(const struct pml_marks *marks, int device, int column);

#endif
