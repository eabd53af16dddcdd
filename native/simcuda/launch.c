/* Runtime API: fat binaries, kernels and their launches. No kernel runs.
 *
 * Purpose: registration hands out a handle; a launch is counted for a graph being captured and otherwise does nothing.
 * Ownership: static handles. Threads: any; the call configuration of <<<...>>> is thread-local, as in CUDA. Locks: none.
 */
#include "sim.h"

/* ---- registration, called by the start-up code of every library with kernels ---- */

static void *g_binary; /* its address is the handle of every fat binary */

PML_API void **__cudaRegisterFatBinary(void *binary) { return &g_binary; }
PML_API void __cudaRegisterFatBinaryEnd(void **handle) {}
PML_API void __cudaUnregisterFatBinary(void **handle) {}
PML_API char __cudaInitModule(void **handle) { return 1; }
PML_API void __cudaRegisterFunction(void) {}
PML_API void __cudaRegisterVar(void) {}
PML_API void __cudaRegisterManagedVar(void) {}
PML_API void __cudaRegisterTexture(void) {}
PML_API void __cudaRegisterSurface(void) {}

/* ---- launches ---- */

typedef struct {
    pml_dim3 grid, block;
    size_t shared;
    void *stream;
} pml_configuration;

enum { NESTING = 8 }; /* launches whose arguments launch themselves; one is the rule */
static _Thread_local pml_configuration t_configurations[NESTING];
static _Thread_local unsigned t_depth;

PML_API unsigned __cudaPushCallConfiguration(pml_dim3 grid, pml_dim3 block, size_t shared, void *stream)
{
    if (t_depth == NESTING)
        return (unsigned)pml_sim_result(PML_CUDA_INVALID_CONFIGURATION);
    t_configurations[t_depth++] = (pml_configuration){grid, block, shared, stream};
    return PML_CUDA_OK;
}

PML_API int __cudaPopCallConfiguration(pml_dim3 *grid, pml_dim3 *block, size_t *shared, void *stream)
{
    if (t_depth == 0)
        return pml_sim_result(PML_CUDA_INVALID_CONFIGURATION);
    const pml_configuration *top = &t_configurations[--t_depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(void **)stream = top->stream;
    return PML_CUDA_OK;
}

/* An empty grid or an oversized block is an error on hardware too: programs are to see it. */
static int launch(pml_dim3 grid, pml_dim3 block, void *stream)
{
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return pml_sim_result(PML_CUDA_INVALID_CONFIGURATION);
    pml_sim_graph_note_work(stream);
    return PML_CUDA_OK;
}

PML_API int cudaLaunchKernel(const void *function, pml_dim3 grid, pml_dim3 block, void **arguments, size_t shared,
                             void *stream)
{
    return launch(grid, block, stream);
}

PML_API int __cudaLaunchKernel(void *kernel, pml_dim3 grid, pml_dim3 block, void **arguments, size_t shared,
                               void *stream)
{
    return launch(grid, block, stream);
}

PML_API int cudaLaunchCooperativeKernel(const void *function, pml_dim3 grid, pml_dim3 block, void **arguments,
                                        size_t shared, void *stream)
{
    return launch(grid, block, stream);
}

PML_API int cudaLaunchKernelExC(const pml_launch_config *config, const void *function, void **arguments)
{
    return launch(config->grid, config->block, config->stream);
}

PML_API int __cudaGetKernel(void **kernel, const void *function)
{
    *kernel = (void *)function;
    return PML_CUDA_OK;
}

PML_API int cudaGetKernel(void **kernel, const void *function) { return __cudaGetKernel(kernel, function); }

/* ---- what a kernel is like ---- */

PML_API int cudaFuncGetAttributes(pml_func_attributes *attributes, const void *function)
{
    const pml_sim_spec *spec = pml_sim_device_spec();
    int version = 10 * spec->major + spec->minor;
    *attributes = (pml_func_attributes){.max_threads_per_block = 1024,
                                        .registers = 32,
                                        .ptx_version = version,
                                        .binary_version = version,
                                        .max_dynamic_shared_size = spec->shared_per_block_optin};
    return PML_CUDA_OK;
}

PML_API int cudaFuncSetAttribute(const void *function, int attribute, int value) { return PML_CUDA_OK; }
PML_API int cudaFuncSetCacheConfig(const void *function, int config) { return PML_CUDA_OK; }
PML_API int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) { return PML_CUDA_OK; }

PML_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                   size_t shared, unsigned flags)
{
    if (block_size < 1)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    *blocks = pml_sim_device_spec()->threads_per_sm / block_size;
    return PML_CUDA_OK;
}

PML_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

PML_API int cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const pml_launch_config *config)
{
    *clusters = pml_sim_device_spec()->sm_count;
    return PML_CUDA_OK;
}

PML_API int cudaLibraryLoadData(void **library)
{
    *library = &g_binary;
    return PML_CUDA_OK;
}

PML_API int cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
    *kernel = &g_binary;
    return PML_CUDA_OK;
}

PML_API int cudaLibraryUnload(void *library) { return PML_CUDA_OK; }

PML_API int cudaProfilerStart(void) { return PML_CUDA_OK; }
PML_API int cudaProfilerStop(void) { return PML_CUDA_OK; }
