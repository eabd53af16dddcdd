/* Pivots of LU factorizations.
 *
 * Purpose: PyTorch reads them on the host and walks memory by them; zeros would lead it outside. So they say "no row was
 *   exchanged". Ownership: none. Threads: any. Locks: ranges.c's, inside.
 */
#ifndef PML_SIMCUDA_PIVOTS_H
#define PML_SIMCUDA_PIVOTS_H

/* Stores 1..n, `batch` times in a row, in device memory; NULL: no pivots are wanted. */
void pml_pivots_identity(int *pivots, int n, int batch);

#endif
