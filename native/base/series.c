/* A value over a run (see series.h). */
#include "base/series.h"

static void halve(struct pml_series *series)
{
    for (int i = 0; i < series->used / 2; i++) {
        int64_t first = series->value[2 * i], second = series->value[2 * i + 1];
        series->value[i] = first > second ? first : second;
    }
    series->used /= 2;
    series->step *= 2;
}

void pml_series_next(struct pml_series *series, int64_t value)
{
    if (series->used == 0)
        series->step = 1;
    if (series->used == PML_SERIES_POINTS)
        halve(series);
    series->value[series->used++] = value;
    series->left = series->step - 1;
}
