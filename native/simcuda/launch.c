/* Runtime API: fat binaries, kernels and their launches. No kernel runs.
 *
 * Purpose: registration hands out a handle; a launch is counted for a graph being captured and otherwise does nothing.
 * Ownership: static handles. Threads: any; the call configuration of <<<...>>> is thread-local, as in CUDA. Locks:
 * none.
 */
#include "sim.h"

/* ---- registration, called by the start-up code of every library with kernels ---- */

static void *the_binary; /* its address is the handle of every fat binary */

SIM_API void **__cudaRegisterFatBinary(void *binary)
{
    return &the_binary;
}

SIM_API void __cudaRegisterFatBinaryEnd(void **handle)
{
}

SIM_API void __cudaUnregisterFatBinary(void **handle)
{
}

SIM_API char __cudaInitModule(void **handle)
{
    return 1;
}

SIM_API void __cudaRegisterFunction(void)
{
}

SIM_API void __cudaRegisterVar(void)
{
}

SIM_API void __cudaRegisterManagedVar(void)
{
}

SIM_API void __cudaRegisterTexture(void)
{
}

SIM_API void __cudaRegisterSurface(void)
{
}

/* ---- launches ---- */

struct sim_configuration {
    struct cuda_dim3 grid, block;
    size_t shared;
    void *stream;
};

enum { NESTING = 8 }; /* launches whose arguments launch themselves; one is the rule */
static _Thread_local struct sim_configuration configurations[NESTING];
static _Thread_local unsigned depth;

SIM_API unsigned __cudaPushCallConfiguration(struct cuda_dim3 grid, struct cuda_dim3 block, size_t shared, void *stream)
{
    if (depth == NESTING)
        return (unsigned)sim_error_result(CUDA_INVALID_CONFIGURATION);
    configurations[depth++] = (struct sim_configuration){grid, block, shared, stream};
    return CUDA_OK;
}

SIM_API int __cudaPopCallConfiguration(struct cuda_dim3 *grid, struct cuda_dim3 *block, size_t *shared, void *stream)
{
    if (depth == 0)
        return sim_error_result(CUDA_INVALID_CONFIGURATION);
    const struct sim_configuration *top = &configurations[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(void **)stream = top->stream;
    return CUDA_OK;
}

/* An empty grid or an oversized block is an error on hardware too: programs are to see it. */
static int launch(struct cuda_dim3 grid, struct cuda_dim3 block, void *stream)
{
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return sim_error_result(CUDA_INVALID_CONFIGURATION);
    sim_graph_note_work(stream);
    return CUDA_OK;
}

SIM_API int cudaLaunchKernel(const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments,
                             size_t shared, void *stream)
{
    return launch(grid, block, stream);
}

SIM_API int __cudaLaunchKernel(void *kernel, struct cuda_dim3 grid, struct cuda_dim3 block, void **arguments,
                               size_t shared, void *stream)
{
    return launch(grid, block, stream);
}

SIM_API int cudaLaunchCooperativeKernel(const void *function, struct cuda_dim3 grid, struct cuda_dim3 block,
                                        void **arguments, size_t shared, void *stream)
{
    return launch(grid, block, stream);
}

SIM_API int cudaLaunchKernelExC(const struct cuda_launch_config *config, const void *function, void **arguments)
{
    return launch(config->grid, config->block, config->stream);
}

SIM_API int __cudaGetKernel(void **kernel, const void *function)
{
    *kernel = (void *)function;
    return CUDA_OK;
}

SIM_API int cudaGetKernel(void **kernel, const void *function)
{
    return __cudaGetKernel(kernel, function);
}

/* ---- what a kernel is like ---- */

SIM_API int cudaFuncGetAttributes(struct cuda_func_attributes *attributes, const void *function)
{
    const struct sim_spec *spec = sim_device_spec();
    int version = 10 * spec->major + spec->minor;
    *attributes = (struct cuda_func_attributes){.max_threads_per_block = 1024,
                                                .registers = 32,
                                                .ptx_version = version,
                                                .binary_version = version,
                                                .max_dynamic_shared_size = spec->shared_per_block_optin};
    return CUDA_OK;
}

SIM_API int cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    return CUDA_OK;
}

SIM_API int cudaFuncSetCacheConfig(const void *function, int config)
{
    return CUDA_OK;
}

SIM_API int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device)
{
    return CUDA_OK;
}

SIM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                   size_t shared, unsigned flags)
{
    if (block_size < 1)
        return sim_error_result(CUDA_INVALID_VALUE);
    *blocks = sim_device_spec()->threads_per_sm / block_size;
    return CUDA_OK;
}

SIM_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

SIM_API int cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const struct cuda_launch_config *config)
{
    *clusters = sim_device_spec()->sm_count;
    return CUDA_OK;
}

SIM_API int cudaLibraryLoadData(void **library)
{
    *library = &the_binary;
    return CUDA_OK;
}

SIM_API int cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
    *kernel = &the_binary;
    return CUDA_OK;
}

SIM_API int cudaLibraryUnload(void *library)
{
    return CUDA_OK;
}

SIM_API int cudaProfilerStart(void)
{
    return CUDA_OK;
}

SIM_API int cudaProfilerStop(void)
{
    return CUDA_OK;
}
