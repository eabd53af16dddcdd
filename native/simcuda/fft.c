/* cuFFT: plans are accepted, nothing is transformed, no plan needs a workspace (real ones of some sizes do).
 *
 * Ownership: plans are numbers. Threads: any. Locks: none.
 */
#include "outputs.h"

#include <stdatomic.h>

static _Atomic int g_next_plan = 1;

PML_API int cufftCreate(int *plan)
{
    *plan = atomic_fetch_add(&g_next_plan, 1);
    return 0;
}

/* cufftXtMakePlanMany(plan, rank, n, inembed, istride, idist, input type, onembed, ostride, odist, output type, batch,
 * work size, execution type) */
PML_OUTPUT(cufftXtMakePlanMany, 13, size_t)
PML_NOTHING(cufftDestroy)
PML_NOTHING(cufftSetAutoAllocation)
PML_NOTHING(cufftSetStream)
PML_NOTHING(cufftSetWorkArea)
PML_NOTHING(cufftXtExec)
