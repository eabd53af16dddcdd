/* cuBLAS and cuBLASLt: handles and settings are real, products are not computed.
 *
 * Purpose: the real libraries refuse to start without a device. The workspace that PyTorch gives to cuBLAS is PyTorch's
 * own allocation and appears as on hardware. Ownership: a handle or descriptor belongs to its creator. Threads: any,
 * one handle by one thread at a time, as in cuBLAS. Locks: none.
 */
#include "outputs.h"
#include "pivots.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum blas_status { OK = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7 };

struct sim_blas_handle {
    int math_mode, pointer_mode;
    void *stream;
};

/* cublasLtMatmulHeuristicResult_t of cublasLt.h */
struct sim_lt_heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

static int create(void **object, size_t size)
{
    *object = calloc(1, size);
    return *object ? OK : ALLOC_FAILED;
}

static int destroy(void *object)
{
    free(object);
    return OK;
}

SIM_API int cublasCreate_v2(void **handle)
{
    return create(handle, sizeof(struct sim_blas_handle));
}

SIM_API int cublasDestroy_v2(void *handle)
{
    return destroy(handle);
}

SIM_API int cublasGetMathMode(void *handle, int *mode)
{
    *mode = ((struct sim_blas_handle *)handle)->math_mode;
    return OK;
}

SIM_API int cublasSetMathMode(void *handle, int mode)
{
    ((struct sim_blas_handle *)handle)->math_mode = mode;
    return OK;
}

SIM_API int cublasGetPointerMode_v2(void *handle, int *mode)
{
    *mode = ((struct sim_blas_handle *)handle)->pointer_mode;
    return OK;
}

SIM_API int cublasSetPointerMode_v2(void *handle, int mode)
{
    ((struct sim_blas_handle *)handle)->pointer_mode = mode;
    return OK;
}

SIM_API int cublasSetStream_v2(void *handle, void *stream)
{
    ((struct sim_blas_handle *)handle)->stream = stream;
    return OK;
}

SIM_API int cublasGetStream_v2(void *handle, void **stream)
{
    *stream = ((struct sim_blas_handle *)handle)->stream;
    return OK;
}

/* ---- cuBLASLt ---- */

SIM_API size_t cublasLtGetVersion(void)
{
    return 130000;
}

SIM_API int cublasLtMatmulDescCreate(void **descriptor, int compute, int scale)
{
    return create(descriptor, 256);
}

SIM_API int cublasLtMatmulDescDestroy(void *descriptor)
{
    return destroy(descriptor);
}

SIM_API int cublasLtMatmulPreferenceCreate(void **preference)
{
    return create(preference, 256);
}

SIM_API int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return destroy(preference);
}

SIM_API int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading)
{
    return create(layout, 256);
}

SIM_API int cublasLtMatrixLayoutDestroy(void *layout)
{
    return destroy(layout);
}

/* One algorithm that needs no workspace. */
SIM_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                           void *preference, int wanted, struct sim_lt_heuristic *results, int *found)
{
    if (wanted < 1 || results == NULL || found == NULL)
        return INVALID_VALUE;
    memset(results, 0, sizeof *results);
    *found = 1;
    return OK;
}

SIM_API int cublasLtMatmulAlgoConfigGetAttribute(const void *algorithm, int attribute, void *value, size_t size,
                                                 size_t *written)
{
    if (value != NULL)
        memset(value, 0, size);
    if (written != NULL)
        *written = size;
    return OK;
}

SIM_API int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a, void *a_layout,
                           const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,
                           void *d_layout, const void *algorithm, void *workspace, size_t size, void *stream)
{
    sim_graph_note_work(stream);
    return OK;
}

/* ---- batched factorizations: an argument error reported to the host (none), and pivots ---- */

SIM_OUTPUT_SDCZ(cublas, geqrfBatched, 7, int)
SIM_OUTPUT_SDCZ(cublas, gelsBatched, 10, int)
SIM_OUTPUT_SDCZ(cublas, getrsBatched, 10, int)

#define GETRF(type) \
    SIM_API int cublas##type##getrfBatched(void *handle, int n, void *matrices, int leading, int *pivots, int *info, \
                                           int batch) \
    { \
        sim_pivots_store_identity(pivots, n, batch); \
        return OK; \
    }
GETRF(S)
GETRF(D)
GETRF(C)
GETRF(Z)

/* clang-format off */
#define SETTINGS(S) \
    S(GetMatrixAsync) S(GetVectorAsync) S(LtMatmulAlgoCheck) S(LtMatmulAlgoConfigSetAttribute) \
    S(LtMatmulAlgoInit) S(LtMatmulDescSetAttribute) S(LtMatmulPreferenceSetAttribute) \
    S(LtMatrixLayoutSetAttribute) S(SetAtomicsMode) S(SetMatrixAsync) S(SetSmCountTarget) S(SetVectorAsync) \
    S(SetWorkspace_v2)
/* clang-format on */
#define S(name) \
    SIM_API int cublas##name(void) \
    { \
        return OK; \
    }
SETTINGS(S)
#undef S

/* ---- the products: work on the handle's stream; the other arguments do not matter ---- */

/* clang-format off */
#define PRODUCTS(S) \
    S(Caxpy_v2) S(Ccopy_v2) S(Cdotc_v2) S(Cdotu_v2) S(Cgemm3m) S(CgemmBatched) S(CgemmStridedBatched) \
    S(Cgemm_v2) S(Cgemv_v2) S(Cgerc_v2) S(Cgeru_v2) S(Chemm_v2) S(Chemv_v2) S(Cher2_v2) S(Cher2k_v2) S(Cher_v2) \
    S(Cherk_v2) S(Crot_v2) S(Crotg_v2) S(Cscal_v2) S(Csrot_v2) S(Csscal_v2) S(Cswap_v2) S(Csymm_v2) S(Csymv_v2) \
    S(Csyr2_v2) S(Csyr2k_v2) S(Csyr_v2) S(Csyrk_v2) S(Ctrmm_v2) S(Ctrmv_v2) S(CtrsmBatched) S(Ctrsm_v2) \
    S(Ctrsv_v2) S(Dasum_v2) S(Daxpy_v2) S(Dcopy_v2) S(Ddot_v2) S(DgemmBatched) S(DgemmStridedBatched) \
    S(Dgemm_v2) S(Dgemv_v2) S(Dger_v2) S(Dnrm2_v2) S(DotEx) S(Drot_v2) S(Drotg_v2) S(Drotm_v2) S(Drotmg_v2) \
    S(Dscal_v2) S(Dswap_v2) S(Dsymm_v2) S(Dsymv_v2) S(Dsyr2_v2) S(Dsyr2k_v2) S(Dsyr_v2) S(Dsyrk_v2) S(Dtrmm_v2) \
    S(Dtrmv_v2) S(DtrsmBatched) S(Dtrsm_v2) S(Dtrsv_v2) S(Dzasum_v2) S(Dznrm2_v2) S(GemmBatchedEx) S(GemmEx) \
    S(GemmGroupedBatchedEx) S(GemmStridedBatchedEx) S(Hgemm) S(HgemmBatched) S(HgemmStridedBatched) S(Icamax_v2) \
    S(Icamin_v2) S(Idamax_v2) S(Idamin_v2) S(Isamax_v2) S(Isamin_v2) S(Izamax_v2) S(Izamin_v2) S(Sasum_v2) \
    S(Saxpy_v2) S(Scasum_v2) S(Scnrm2_v2) S(Scopy_v2) S(Sdot_v2) S(SgemmBatched) S(SgemmEx) \
    S(SgemmStridedBatched) S(Sgemm_v2) S(Sgemv_v2) S(Sger_v2) S(Snrm2_v2) S(Srot_v2) S(Srotg_v2) S(Srotm_v2) \
    S(Srotmg_v2) S(Sscal_v2) S(Sswap_v2) S(Ssymm_v2) S(Ssymv_v2) S(Ssyr2_v2) S(Ssyr2k_v2) S(Ssyr_v2) S(Ssyrk_v2) \
    S(Strmm_v2) S(Strmv_v2) S(StrsmBatched) S(Strsm_v2) S(Strsv_v2) S(Zaxpy_v2) S(Zcopy_v2) S(Zdotc_v2) \
    S(Zdotu_v2) S(Zdrot_v2) S(Zdscal_v2) S(ZgemmBatched) S(ZgemmStridedBatched) S(Zgemm_v2) S(Zgemv_v2) \
    S(Zgerc_v2) S(Zgeru_v2) S(Zhemm_v2) S(Zhemv_v2) S(Zher2_v2) S(Zher2k_v2) S(Zher_v2) S(Zherk_v2) S(Zrot_v2) \
    S(Zrotg_v2) S(Zscal_v2) S(Zswap_v2) S(Zsymm_v2) S(Zsymv_v2) S(Zsyr2_v2) S(Zsyr2k_v2) S(Zsyr_v2) S(Zsyrk_v2) \
    S(Ztrmm_v2) S(Ztrmv_v2) S(ZtrsmBatched) S(Ztrsm_v2) S(Ztrsv_v2)
/* clang-format on */
#define S(name) \
    SIM_API int cublas##name(void *handle) \
    { \
        sim_graph_note_work(((struct sim_blas_handle *)handle)->stream); \
        return OK; \
    }
PRODUCTS(S)
