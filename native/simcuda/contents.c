/* Contents of a block end with the block.
 *
 * Purpose: PyTorch's allocator keeps a freed block for the next tensor. On hardware kernels overwrite it; here none
 * runs, and the next tensor would read an older one's copied-in bytes: GradScaler, for one, could take them for an
 * overflow and skip the optimizer step that allocates most. So libc10_cuda's call of c10::reportMemoryUsageToProfiler
 * is led through here (interpose.c), and what is freed becomes zeros. A tensor that nothing was copied to then always
 * reads as zeros. Ownership: none. Threads: any, with PyTorch's allocator lock held; no Python. Locks: ranges.c's,
 * inside.
 */
#include "contents.h"

#include "sim.h"

static _Atomic(pml_torch_report *) next_report;

void sim_contents_chain(pml_torch_report *next)
{
    atomic_store(&next_report, next);
}

void sim_contents_report(void *block, int64_t size, size_t allocated, size_t reserved, struct pml_torch_device device)
{
    if (size < 0 && device.type == PML_TORCH_DEVICE_CUDA)
        sim_ranges_forget(block, (size_t)-size);
    pml_torch_report *next = atomic_load(&next_report);
    if (next)
        next(block, size, allocated, reserved, device);
}
