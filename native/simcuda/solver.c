/* cuSOLVER (dense): handles and workspace sizes; nothing is solved, and no workspace is needed (real routines do).
 *
 * Ownership: a handle belongs to its creator. Threads: any. Locks: none. Argument positions: cusolverDn.h of CUDA 13.
 */
#include "outputs.h"
#include "pivots.h"
#include "sim.h"

PML_CREATE(cusolverDnCreate)
PML_DESTROY(cusolverDnDestroy)
PML_CREATE(cusolverDnCreateParams)
PML_DESTROY(cusolverDnDestroyParams)
PML_CREATE(cusolverDnCreateGesvdjInfo)
PML_DESTROY(cusolverDnDestroyGesvdjInfo)
PML_NOTHING(cusolverDnSetStream)
PML_NOTHING(cusolverDnSetDeterministicMode)
PML_NOTHING(cusolverDnXgesvdjSetTolerance)
PML_NOTHING(cusolverDnXgesvdjSetMaxSweeps)
PML_NOTHING(cusolverDnXgesvdjSetSortEig)

/* ---- workspace sizes ---- */

PML_OUTPUT_SDCZ(cusolverDn, getrf_bufferSize, 6, int)
PML_OUTPUT_SDCZ(cusolverDn, potrf_bufferSize, 6, int)
PML_OUTPUT_SDCZ(cusolverDn, geqrf_bufferSize, 6, int)
PML_OUTPUT_SDCZ(cusolverDn, sytrf_bufferSize, 5, int)
PML_OUTPUT_SDCZ(cusolverDn, gesvd_bufferSize, 4, int)
PML_OUTPUT_SDCZ(cusolverDn, gesvdj_bufferSize, 13, int)
PML_OUTPUT_SDCZ(cusolverDn, gesvdjBatched_bufferSize, 12, int)
PML_OUTPUT_SDCZ(cusolverDn, gesvdaStridedBatched_bufferSize, 17, int)
PML_OUTPUT(cusolverDnSsyevd_bufferSize, 8, int)
PML_OUTPUT(cusolverDnDsyevd_bufferSize, 8, int)
PML_OUTPUT(cusolverDnCheevd_bufferSize, 8, int)
PML_OUTPUT(cusolverDnZheevd_bufferSize, 8, int)
PML_OUTPUT(cusolverDnSsyevj_bufferSize, 8, int)
PML_OUTPUT(cusolverDnDsyevj_bufferSize, 8, int)
PML_OUTPUT(cusolverDnCheevj_bufferSize, 8, int)
PML_OUTPUT(cusolverDnZheevj_bufferSize, 8, int)
PML_OUTPUT(cusolverDnSsyevjBatched_bufferSize, 8, int)
PML_OUTPUT(cusolverDnDsyevjBatched_bufferSize, 8, int)
PML_OUTPUT(cusolverDnCheevjBatched_bufferSize, 8, int)
PML_OUTPUT(cusolverDnZheevjBatched_bufferSize, 8, int)
PML_OUTPUT(cusolverDnSorgqr_bufferSize, 8, int)
PML_OUTPUT(cusolverDnDorgqr_bufferSize, 8, int)
PML_OUTPUT(cusolverDnCungqr_bufferSize, 8, int)
PML_OUTPUT(cusolverDnZungqr_bufferSize, 8, int)
PML_OUTPUT(cusolverDnSormqr_bufferSize, 12, int)
PML_OUTPUT(cusolverDnDormqr_bufferSize, 12, int)
PML_OUTPUT(cusolverDnCunmqr_bufferSize, 12, int)
PML_OUTPUT(cusolverDnZunmqr_bufferSize, 12, int)
PML_OUTPUTS(cusolverDnXpotrf_bufferSize, 9, 10, size_t)
PML_OUTPUTS(cusolverDnXgeqrf_bufferSize, 11, 12, size_t)
PML_OUTPUTS(cusolverDnXsyevd_bufferSize, 12, 13, size_t)
PML_OUTPUTS(cusolverDnXsyevBatched_bufferSize, 12, 13, size_t)
PML_OUTPUTS(cusolverDnXsytrs_bufferSize, 12, 13, size_t)
PML_OUTPUTS(cusolverDnXgeev_bufferSize, 18, 19, size_t)

/* ---- routines ---- */

void pml_pivots_identity(int *pivots, int n, int batch)
{
    int *rows = pivots != NULL && n > 0 && batch > 0 ? malloc((size_t)n * (size_t)batch * sizeof *rows) : NULL;
    if (rows == NULL)
        return;
    for (size_t i = 0; i < (size_t)n * (size_t)batch; i++)
        rows[i] = (int)(i % (size_t)n) + 1;
    pml_range_copy(pivots, rows, (size_t)n * (size_t)batch * sizeof *rows);
    free(rows);
}

#define GETRF(type)                                                                                             \
    PML_API int cusolverDn##type##getrf(void *handle, int m, int n, void *matrix, int leading, void *workspace, \
                                        int *pivots, int *info)                                                 \
    {                                                                                                           \
        pml_pivots_identity(pivots, m < n ? m : n, 1);                                                          \
        return 0;                                                                                               \
    }
GETRF(S)
GETRF(D)
GETRF(C)
GETRF(Z)

PML_NOTHING_SDCZ(cusolverDn, getrs)
PML_NOTHING_SDCZ(cusolverDn, potrf)
PML_NOTHING_SDCZ(cusolverDn, potrs)
PML_NOTHING_SDCZ(cusolverDn, potrfBatched)
PML_NOTHING_SDCZ(cusolverDn, potrsBatched)
PML_NOTHING_SDCZ(cusolverDn, geqrf)
PML_NOTHING_SDCZ(cusolverDn, sytrf)
PML_NOTHING_SDCZ(cusolverDn, gesvd)
PML_NOTHING_SDCZ(cusolverDn, gesvdj)
PML_NOTHING_SDCZ(cusolverDn, gesvdjBatched)
PML_NOTHING_SDCZ(cusolverDn, gesvdaStridedBatched)
PML_NOTHING(cusolverDnSsyevd)
PML_NOTHING(cusolverDnDsyevd)
PML_NOTHING(cusolverDnCheevd)
PML_NOTHING(cusolverDnZheevd)
PML_NOTHING(cusolverDnSsyevj)
PML_NOTHING(cusolverDnDsyevj)
PML_NOTHING(cusolverDnCheevj)
PML_NOTHING(cusolverDnZheevj)
PML_NOTHING(cusolverDnSsyevjBatched)
PML_NOTHING(cusolverDnDsyevjBatched)
PML_NOTHING(cusolverDnCheevjBatched)
PML_NOTHING(cusolverDnZheevjBatched)
PML_NOTHING(cusolverDnSorgqr)
PML_NOTHING(cusolverDnDorgqr)
PML_NOTHING(cusolverDnCungqr)
PML_NOTHING(cusolverDnZungqr)
PML_NOTHING(cusolverDnSormqr)
PML_NOTHING(cusolverDnDormqr)
PML_NOTHING(cusolverDnCunmqr)
PML_NOTHING(cusolverDnZunmqr)
PML_NOTHING(cusolverDnXpotrf)
PML_NOTHING(cusolverDnXpotrs)
PML_NOTHING(cusolverDnXgeqrf)
PML_NOTHING(cusolverDnXsyevd)
PML_NOTHING(cusolverDnXsyevBatched)
PML_NOTHING(cusolverDnXsytrs)
PML_NOTHING(cusolverDnXgeev)
