/* cuSPARSE: handles, descriptors and workspace sizes; no product is computed and no workspace needed (real ones are).
 *
 * Ownership: a handle or descriptor belongs to its creator. Threads: any. Locks: none. Argument positions: cusparse.h of
 * CUDA 13.
 */
#include "outputs.h"

PML_API const char *cusparseGetErrorString(int status)
{
    return status == 0 ? "success" : "not supported by the simulated GPU";
}

PML_API const char *cusparseGetErrorName(int status)
{
    return status == 0 ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_NOT_SUPPORTED";
}

/* ---- handles and descriptors; a sparse matrix knows its shape, since a product's is asked for ---- */

typedef struct {
    int64_t rows, columns, nonzeros;
} pml_sparse_matrix;

static int create_matrix(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    pml_sparse_matrix *made = malloc(sizeof *made);
    *matrix = made;
    if (made == NULL)
        return 1;
    *made = (pml_sparse_matrix){rows, columns, nonzeros};
    return 0;
}

PML_API int cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    return create_matrix(matrix, rows, columns, nonzeros);
}

PML_API int cusparseCreateConstCsr(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    return create_matrix(matrix, rows, columns, nonzeros);
}

PML_API int cusparseCreateCoo(void **matrix, int64_t rows, int64_t columns, int64_t nonzeros)
{
    return create_matrix(matrix, rows, columns, nonzeros);
}

PML_API int cusparseSpMatGetSize(void *matrix, int64_t *rows, int64_t *columns, int64_t *nonzeros)
{
    const pml_sparse_matrix *known = matrix;
    *rows = known->rows;
    *columns = known->columns;
    *nonzeros = known->nonzeros;
    return 0;
}

PML_DESTROY(cusparseDestroySpMat)
PML_CREATE(cusparseCreate)
PML_DESTROY(cusparseDestroy)
PML_CREATE(cusparseCreateDnMat)
PML_CREATE(cusparseCreateConstDnMat)
PML_DESTROY(cusparseDestroyDnMat)
PML_CREATE(cusparseCreateDnVec)
PML_CREATE(cusparseCreateConstDnVec)
PML_DESTROY(cusparseDestroyDnVec)
PML_CREATE(cusparseCreateMatDescr)
PML_DESTROY(cusparseDestroyMatDescr)
PML_CREATE(cusparseCreateBsrsm2Info)
PML_DESTROY(cusparseDestroyBsrsm2Info)
PML_CREATE(cusparseCreateBsrsv2Info)
PML_DESTROY(cusparseDestroyBsrsv2Info)
PML_CREATE(cusparseSpGEMM_createDescr)
PML_DESTROY(cusparseSpGEMM_destroyDescr)
PML_CREATE(cusparseSpSM_createDescr)
PML_DESTROY(cusparseSpSM_destroyDescr)
PML_CREATE(cusparseSpSV_createDescr)
PML_DESTROY(cusparseSpSV_destroyDescr)
PML_NOTHING(cusparseSetStream)
PML_NOTHING(cusparseSetPointerMode)
PML_NOTHING(cusparseSetMatDiagType)
PML_NOTHING(cusparseSetMatFillMode)
PML_NOTHING(cusparseSetMatIndexBase)
PML_NOTHING(cusparseSetMatType)
PML_NOTHING(cusparseCsrSetPointers)
PML_NOTHING(cusparseCsrSetStridedBatch)
PML_NOTHING(cusparseDnMatSetStridedBatch)
PML_NOTHING(cusparseSpMatSetAttribute)

/* ---- workspace sizes and other outputs ---- */

PML_OUTPUT(cusparseSpMM_bufferSize, 11, size_t)
PML_OUTPUT(cusparseSpMV_bufferSize, 10, size_t)
PML_OUTPUT(cusparseSpSM_bufferSize, 11, size_t)
PML_OUTPUT(cusparseSpSV_bufferSize, 10, size_t)
PML_OUTPUT(cusparseSDDMM_bufferSize, 11, size_t)
PML_OUTPUT(cusparseSpGEMM_workEstimation, 12, size_t)
PML_OUTPUT(cusparseSpGEMM_compute, 12, size_t)
PML_OUTPUT(cusparseXcoosort_bufferSizeExt, 7, size_t)
PML_OUTPUT(cusparseXcsrsort_bufferSizeExt, 7, size_t)
PML_OUTPUT(cusparseXcsrgeam2Nnz, 14, int) /* the number of nonzeros: none */
PML_OUTPUT_SDCZ(cusparse, csrgeam2_bufferSizeExt, 20, size_t)
PML_OUTPUT_SDCZ(cusparse, bsrsv2_bufferSize, 12, int)
PML_OUTPUT_SDCZ(cusparse, bsrsm2_bufferSize, 14, int)

/* The place of a zero pivot; -1: there is none. */
static int no_pivot(int *position)
{
    *position = -1;
    return 0;
}

PML_API int cusparseXbsrsm2_zeroPivot(void *handle, void *info, int *position) { return no_pivot(position); }
PML_API int cusparseXbsrsv2_zeroPivot(void *handle, void *info, int *position) { return no_pivot(position); }

/* ---- routines ---- */

PML_NOTHING(cusparseSpMM)
PML_NOTHING(cusparseSpMV)
PML_NOTHING(cusparseSpSM_analysis)
PML_NOTHING(cusparseSpSM_solve)
PML_NOTHING(cusparseSpSV_analysis)
PML_NOTHING(cusparseSpSV_solve)
PML_NOTHING(cusparseSDDMM)
PML_NOTHING(cusparseSDDMM_preprocess)
PML_NOTHING(cusparseSpGEMM_copy)
PML_NOTHING(cusparseXcoo2csr)
PML_NOTHING(cusparseXcoosortByRow)
PML_NOTHING(cusparseXcsrsort)
PML_NOTHING(cusparseCreateIdentityPermutation)
PML_NOTHING_SDCZ(cusparse, csrgeam2)
PML_NOTHING_SDCZ(cusparse, bsrmm)
PML_NOTHING_SDCZ(cusparse, bsrmv)
PML_NOTHING_SDCZ(cusparse, bsrsv2_analysis)
PML_NOTHING_SDCZ(cusparse, bsrsv2_solve)
PML_NOTHING_SDCZ(cusparse, bsrsm2_analysis)
PML_NOTHING_SDCZ(cusparse, bsrsm2_solve)
