/* Pivots of LU factorizations.
 *
 * Purpose: PyTorch reads them on the host and walks memory by them; zeros would lead it outside. So they say "no row
 * was exchanged". Ownership: none. Threads: any. Locks: ranges.c's, inside.
 */
#ifndef SIM_PIVOTS_H
#define SIM_PIVOTS_H

/* Stores 1..n, `batch` times in a row, in device memory; NULL: no pivots are wanted. */
void sim_pivots_store_identity(int *pivots, int n, int batch);

#endif
