/* Pivots of LU factorizations (see pivots.h). */
#include "pivots.h"

#include "sim.h"

#include <stdlib.h>

void sim_pivots_store_identity(int *pivots, int n, int batch)
{
    int *rows = pivots != NULL && n > 0 && batch > 0 ? malloc((size_t)n * (size_t)batch * sizeof *rows) : NULL;
    if (rows == NULL)
        return;
    for (size_t i = 0; i < (size_t)n * (size_t)batch; i++)
        rows[i] = (int)(i % (size_t)n) + 1;
    sim_ranges_copy(pivots, rows, (size_t)n * (size_t)batch * sizeof *rows);
    free(rows);
}
