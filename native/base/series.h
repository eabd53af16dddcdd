/* A value over a run in a bounded number of points: each is the maximum over a number of events, and when all points
 * are used, pairs are merged. So the peak is always in it. No locks: the caller holds one.
 */
#ifndef PML_SERIES_H
#define PML_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define PML_SERIES_POINTS 256

struct pml_series {
    int used;
    int64_t step; /* events a point */
    int64_t left; /* of the last point */
    int64_t value[PML_SERIES_POINTS];
};

void pml_series_next(struct pml_series *series, int64_t value);

static inline void pml_series_add(struct pml_series *series, int64_t value)
{
    if (series->left == 0) {
        pml_series_next(series, value);
        return;
    }
    series->left--;
    int64_t *last = &series->value[series->used - 1];
    if (*last < value)
        *last = value;
}

#endif
