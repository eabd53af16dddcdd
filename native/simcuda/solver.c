/* cuSOLVER (dense): handles and workspace sizes; nothing is solved, and no workspace is needed (real routines do).
 *
 * Ownership: a handle belongs to its creator. Threads: any. Locks: none. Argument positions: cusolverDn.h of CUDA 13.
 */
#include "outputs.h"
#include "pivots.h"
#include "sim.h"

SIM_CREATE(cusolverDnCreate)
SIM_DESTROY(cusolverDnDestroy)
SIM_CREATE(cusolverDnCreateParams)
SIM_DESTROY(cusolverDnDestroyParams)
SIM_CREATE(cusolverDnCreateGesvdjInfo)
SIM_DESTROY(cusolverDnDestroyGesvdjInfo)
SIM_NOTHING(cusolverDnSetStream)
SIM_NOTHING(cusolverDnSetDeterministicMode)
SIM_NOTHING(cusolverDnXgesvdjSetTolerance)
SIM_NOTHING(cusolverDnXgesvdjSetMaxSweeps)
SIM_NOTHING(cusolverDnXgesvdjSetSortEig)

/* ---- workspace sizes ---- */

SIM_OUTPUT_SDCZ(cusolverDn, getrf_bufferSize, 6, int)
SIM_OUTPUT_SDCZ(cusolverDn, potrf_bufferSize, 6, int)
SIM_OUTPUT_SDCZ(cusolverDn, geqrf_bufferSize, 6, int)
SIM_OUTPUT_SDCZ(cusolverDn, sytrf_bufferSize, 5, int)
SIM_OUTPUT_SDCZ(cusolverDn, gesvd_bufferSize, 4, int)
SIM_OUTPUT_SDCZ(cusolverDn, gesvdj_bufferSize, 13, int)
SIM_OUTPUT_SDCZ(cusolverDn, gesvdjBatched_bufferSize, 12, int)
SIM_OUTPUT_SDCZ(cusolverDn, gesvdaStridedBatched_bufferSize, 17, int)
SIM_OUTPUT(cusolverDnSsyevd_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnDsyevd_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnCheevd_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnZheevd_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnSsyevj_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnDsyevj_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnCheevj_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnZheevj_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnSsyevjBatched_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnDsyevjBatched_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnCheevjBatched_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnZheevjBatched_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnSorgqr_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnDorgqr_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnCungqr_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnZungqr_bufferSize, 8, int)
SIM_OUTPUT(cusolverDnSormqr_bufferSize, 12, int)
SIM_OUTPUT(cusolverDnDormqr_bufferSize, 12, int)
SIM_OUTPUT(cusolverDnCunmqr_bufferSize, 12, int)
SIM_OUTPUT(cusolverDnZunmqr_bufferSize, 12, int)
SIM_OUTPUTS(cusolverDnXpotrf_bufferSize, 9, 10, size_t)
SIM_OUTPUTS(cusolverDnXgeqrf_bufferSize, 11, 12, size_t)
SIM_OUTPUTS(cusolverDnXsyevd_bufferSize, 12, 13, size_t)
SIM_OUTPUTS(cusolverDnXsyevBatched_bufferSize, 12, 13, size_t)
SIM_OUTPUTS(cusolverDnXsytrs_bufferSize, 12, 13, size_t)
SIM_OUTPUTS(cusolverDnXgeev_bufferSize, 18, 19, size_t)

/* ---- routines ---- */

#define GETRF(type) \
    SIM_API int cusolverDn##type##getrf(void *handle, int m, int n, void *matrix, int leading, void *workspace, \
                                        int *pivots, int *info) \
    { \
        sim_pivots_store_identity(pivots, m < n ? m : n, 1); \
        return 0; \
    }
GETRF(S)
GETRF(D)
GETRF(C)
GETRF(Z)

SIM_NOTHING_SDCZ(cusolverDn, getrs)
SIM_NOTHING_SDCZ(cusolverDn, potrf)
SIM_NOTHING_SDCZ(cusolverDn, potrs)
SIM_NOTHING_SDCZ(cusolverDn, potrfBatched)
SIM_NOTHING_SDCZ(cusolverDn, potrsBatched)
SIM_NOTHING_SDCZ(cusolverDn, geqrf)
SIM_NOTHING_SDCZ(cusolverDn, sytrf)
SIM_NOTHING_SDCZ(cusolverDn, gesvd)
SIM_NOTHING_SDCZ(cusolverDn, gesvdj)
SIM_NOTHING_SDCZ(cusolverDn, gesvdjBatched)
SIM_NOTHING_SDCZ(cusolverDn, gesvdaStridedBatched)
SIM_NOTHING(cusolverDnSsyevd)
SIM_NOTHING(cusolverDnDsyevd)
SIM_NOTHING(cusolverDnCheevd)
SIM_NOTHING(cusolverDnZheevd)
SIM_NOTHING(cusolverDnSsyevj)
SIM_NOTHING(cusolverDnDsyevj)
SIM_NOTHING(cusolverDnCheevj)
SIM_NOTHING(cusolverDnZheevj)
SIM_NOTHING(cusolverDnSsyevjBatched)
SIM_NOTHING(cusolverDnDsyevjBatched)
SIM_NOTHING(cusolverDnCheevjBatched)
SIM_NOTHING(cusolverDnZheevjBatched)
SIM_NOTHING(cusolverDnSorgqr)
SIM_NOTHING(cusolverDnDorgqr)
SIM_NOTHING(cusolverDnCungqr)
SIM_NOTHING(cusolverDnZungqr)
SIM_NOTHING(cusolverDnSormqr)
SIM_NOTHING(cusolverDnDormqr)
SIM_NOTHING(cusolverDnCunmqr)
SIM_NOTHING(cusolverDnZunmqr)
SIM_NOTHING(cusolverDnXpotrf)
SIM_NOTHING(cusolverDnXpotrs)
SIM_NOTHING(cusolverDnXgeqrf)
SIM_NOTHING(cusolverDnXsyevd)
SIM_NOTHING(cusolverDnXsyevBatched)
SIM_NOTHING(cusolverDnXsytrs)
SIM_NOTHING(cusolverDnXgeev)
