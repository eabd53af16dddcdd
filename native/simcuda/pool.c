/* Runtime API: the stream-ordered allocator (cudaMallocAsync) and its memory pools.
 *
 * Purpose: one default pool a device, which holds nothing back: a freed block returns to the device at once. On
 * hardware the pool keeps freed memory up to its release threshold; PyTorch's reserved figures can be higher there.
 * Ownership: pools are static. Threads: any. Locks: none; the device counters are atomics (device.c).
 */
#include "sim.h"

enum pool_attribute {
    REUSE_FOLLOW_EVENTS = 1,
    REUSE_OPPORTUNISTIC = 2,
    REUSE_INTERNAL = 3,
    RELEASE_THRESHOLD = 4,
    RESERVED_CURRENT = 5,
    RESERVED_HIGH = 6,
    USED_CURRENT = 7,
    USED_HIGH = 8,
};

SIM_API int cudaMalloc(void **pointer, size_t size);
SIM_API int cudaFree(void *pointer);

static char all_pools[SIM_MAX_DEVICES]; /* their addresses are the handles */
static _Atomic uint64_t settings[SIM_MAX_DEVICES][RELEASE_THRESHOLD + 1];

/* The device a pool belongs to, or -1. */
static int device_of(const void *pool)
{
    for (int device = 0; device < sim_device_count(); device++)
        if (pool == &all_pools[device])
            return device;
    return -1;
}

SIM_API int cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    if (device < 0 || device >= sim_device_count())
        return sim_error_result(CUDA_INVALID_DEVICE);
    *pool = &all_pools[device];
    return CUDA_OK;
}

SIM_API int cudaDeviceGetMemPool(void **pool, int device)
{
    return cudaDeviceGetDefaultMemPool(pool, device);
}

SIM_API int cudaMallocAsync(void **pointer, size_t size, void *stream)
{
    sim_graph_note_work(stream);
    return cudaMalloc(pointer, size);
}

SIM_API int cudaFreeAsync(void *pointer, void *stream)
{
    sim_graph_note_work(stream);
    return cudaFree(pointer);
}

SIM_API int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    int device = device_of(pool);
    if (device < 0 || attribute < REUSE_FOLLOW_EVENTS || attribute > USED_HIGH)
        return sim_error_result(CUDA_INVALID_VALUE);
    if (attribute < RELEASE_THRESHOLD)
        *(int *)value = (int)atomic_load(&settings[device][attribute]);
    else if (attribute == RELEASE_THRESHOLD)
        *(uint64_t *)value = atomic_load(&settings[device][attribute]);
    else if (attribute == RESERVED_CURRENT || attribute == USED_CURRENT)
        *(uint64_t *)value = sim_device_used(device);
    else
        *(uint64_t *)value = sim_device_peak(device);
    return CUDA_OK;
}

SIM_API int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    int device = device_of(pool);
    if (device < 0 || attribute < REUSE_FOLLOW_EVENTS || attribute > USED_HIGH)
        return sim_error_result(CUDA_INVALID_VALUE);
    if (attribute < RELEASE_THRESHOLD)
        atomic_store(&settings[device][attribute], (uint64_t)*(int *)value);
    else if (attribute == RELEASE_THRESHOLD)
        atomic_store(&settings[device][attribute], *(uint64_t *)value);
    else
        sim_device_reset_peak(device); /* the only value CUDA takes for the others is 0: start a new high */
    return CUDA_OK;
}

SIM_API int cudaMemPoolSetAccess(void *pool, const void *access, size_t count)
{
    return CUDA_OK;
}

SIM_API int cudaMemPoolTrimTo(void *pool, size_t keep)
{
    return CUDA_OK;
}

SIM_API int cudaMemPoolCreate(void)
{
    return sim_error_result(CUDA_NOT_SUPPORTED);
}

SIM_API int cudaMallocFromPoolAsync(void)
{
    return sim_error_result(CUDA_NOT_SUPPORTED);
}

/* Memory owned by graphs: there is none, a graph holds no allocations here. */
SIM_API int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    *(uint64_t *)value = 0;
    return CUDA_OK;
}

SIM_API int cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
    return CUDA_OK;
}

SIM_API int cudaDeviceGraphMemTrim(int device)
{
    return CUDA_OK;
}
