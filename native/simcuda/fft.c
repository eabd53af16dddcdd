/* cuFFT: plans are accepted, nothing is transformed, no plan needs a workspace (real ones of some sizes do).
 *
 * Ownership: plans are numbers. Threads: any. Locks: none.
 */
#include "outputs.h"

#include <stdatomic.h>

static _Atomic int next_plan = 1;

SIM_API int cufftCreate(int *plan)
{
    *plan = atomic_fetch_add(&next_plan, 1);
    return 0;
}

/* cufftXtMakePlanMany(plan, rank, n, inembed, istride, idist, input type, onembed, ostride, odist, output type, batch,
 * work size, execution type) */
SIM_OUTPUT(cufftXtMakePlanMany, 13, size_t)
SIM_NOTHING(cufftDestroy)
SIM_NOTHING(cufftSetAutoAllocation)
SIM_NOTHING(cufftSetStream)
SIM_NOTHING(cufftSetWorkArea)
SIM_NOTHING(cufftXtExec)
