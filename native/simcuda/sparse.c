/* cuSPARSE: handles, descriptors and workspace sizes; no product is computed and no workspace needed (real ones are).
 *
 * Ownership: a handle or descriptor belongs to its creator. Threads: any. Locks: none. Argument positions: cusparse.h
 * of CUDA 13.
 */
#include "outputs.h"

SIM_API const char *cusparseGetErrorString(int status)
{
    return status == 0 ? "success" : "not supported by the simulated GPU";
}

SIM_API const char *cusparseGetErrorName(int status)
{
    return status == 0 ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_NOT_SUPPORTED";
}

/* ---- handles and descriptors; a sparse matrix knows its shape, since a product's is asked for ---- */

struct sim_sparse_matrix {
    int64_t rows, columns, nonzeros;
};

static int create_matrix(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    struct sim_sparse_matrix *made = malloc(sizeof *made);
    *matrix = made;
    if (made == NULL)
        return 1;
    *made = (struct sim_sparse_matrix){rows, columns, nonzeros};
    return 0;
}

SIM_API int cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    return create_matrix(matrix, rows, columns, nonzeros);
}

SIM_API int cusparseCreateConstCsr(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    return create_matrix(matrix, rows, columns, nonzeros);
}

SIM_API int cusparseCreateCoo(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    return create_matrix(matrix, rows, columns, nonzeros);
}

SIM_API int cusparseSpMatGetSize(void *matrix, int64_t *rows, int64_t *columns, int64_t *nonzeros)
{
    const struct sim_sparse_matrix *known = matrix;
    *rows = known->rows;
    *columns = known->columns;
    *nonzeros = known->nonzeros;
    return 0;
}

SIM_DESTROY(cusparseDestroySpMat)
SIM_CREATE(cusparseCreate)
SIM_DESTROY(cusparseDestroy)
SIM_CREATE(cusparseCreateDnMat)
SIM_CREATE(cusparseCreateConstDnMat)
SIM_DESTROY(cusparseDestroyDnMat)
SIM_CREATE(cusparseCreateDnVec)
SIM_CREATE(cusparseCreateConstDnVec)
SIM_DESTROY(cusparseDestroyDnVec)
SIM_CREATE(cusparseCreateMatDescr)
SIM_DESTROY(cusparseDestroyMatDescr)
SIM_CREATE(cusparseCreateBsrsm2Info)
SIM_DESTROY(cusparseDestroyBsrsm2Info)
SIM_CREATE(cusparseCreateBsrsv2Info)
SIM_DESTROY(cusparseDestroyBsrsv2Info)
SIM_CREATE(cusparseSpGEMM_createDescr)
SIM_DESTROY(cusparseSpGEMM_destroyDescr)
SIM_CREATE(cusparseSpSM_createDescr)
SIM_DESTROY(cusparseSpSM_destroyDescr)
SIM_CREATE(cusparseSpSV_createDescr)
SIM_DESTROY(cusparseSpSV_destroyDescr)
SIM_NOTHING(cusparseSetStream)
SIM_NOTHING(cusparseSetPointerMode)
SIM_NOTHING(cusparseSetMatDiagType)
SIM_NOTHING(cusparseSetMatFillMode)
SIM_NOTHING(cusparseSetMatIndexBase)
SIM_NOTHING(cusparseSetMatType)
SIM_NOTHING(cusparseCsrSetPointers)
SIM_NOTHING(cusparseCsrSetStridedBatch)
SIM_NOTHING(cusparseDnMatSetStridedBatch)
SIM_NOTHING(cusparseSpMatSetAttribute)

/* ---- workspace sizes and other outputs ---- */

SIM_OUTPUT(cusparseSpMM_bufferSize, 11, size_t)
SIM_OUTPUT(cusparseSpMV_bufferSize, 10, size_t)
SIM_OUTPUT(cusparseSpSM_bufferSize, 11, size_t)
SIM_OUTPUT(cusparseSpSV_bufferSize, 10, size_t)
SIM_OUTPUT(cusparseSDDMM_bufferSize, 11, size_t)
SIM_OUTPUT(cusparseSpGEMM_workEstimation, 12, size_t)
SIM_OUTPUT(cusparseSpGEMM_compute, 12, size_t)
SIM_OUTPUT(cusparseXcoosort_bufferSizeExt, 7, size_t)
SIM_OUTPUT(cusparseXcsrsort_bufferSizeExt, 7, size_t)
SIM_OUTPUT(cusparseXcsrgeam2Nnz, 14, int) /* the number of nonzeros: none */
SIM_OUTPUT_SDCZ(cusparse, csrgeam2_bufferSizeExt, 20, size_t)
SIM_OUTPUT_SDCZ(cusparse, bsrsv2_bufferSize, 12, int)
SIM_OUTPUT_SDCZ(cusparse, bsrsm2_bufferSize, 14, int)

/* The place of a zero pivot; -1: there is none. */
static int no_pivot(int *position)
{
    *position = -1;
    return 0;
}

SIM_API int cusparseXbsrsm2_zeroPivot(void *handle, void *info, int *position)
{
    return no_pivot(position);
}

SIM_API int cusparseXbsrsv2_zeroPivot(void *handle, void *info, int *position)
{
    return no_pivot(position);
}

/* ---- routines ---- */

SIM_NOTHING(cusparseSpMM)
SIM_NOTHING(cusparseSpMV)
SIM_NOTHING(cusparseSpSM_analysis)
SIM_NOTHING(cusparseSpSM_solve)
SIM_NOTHING(cusparseSpSV_analysis)
SIM_NOTHING(cusparseSpSV_solve)
SIM_NOTHING(cusparseSDDMM)
SIM_NOTHING(cusparseSDDMM_preprocess)
SIM_NOTHING(cusparseSpGEMM_copy)
SIM_NOTHING(cusparseXcoo2csr)
SIM_NOTHING(cusparseXcoosortByRow)
SIM_NOTHING(cusparseXcsrsort)
SIM_NOTHING(cusparseCreateIdentityPermutation)
SIM_NOTHING_SDCZ(cusparse, csrgeam2)
SIM_NOTHING_SDCZ(cusparse, bsrmm)
SIM_NOTHING_SDCZ(cusparse, bsrmv)
SIM_NOTHING_SDCZ(cusparse, bsrsv2_analysis)
SIM_NOTHING_SDCZ(cusparse, bsrsv2_solve)
SIM_NOTHING_SDCZ(cusparse, bsrsm2_analysis)
SIM_NOTHING_SDCZ(cusparse, bsrsm2_solve)
