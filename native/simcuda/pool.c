/* Runtime API: the stream-ordered allocator (cudaMallocAsync) and its memory pools.
 *
 * Purpose: one default pool a device, which holds nothing back: a freed block returns to the device at once. On hardware
 *   the pool keeps freed memory up to its release threshold; PyTorch's reserved figures can be higher there.
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

PML_API int cudaMalloc(void **pointer, size_t size);
PML_API int cudaFree(void *pointer);

static char g_pools[PML_MAX_DEVICES]; /* their addresses are the handles */
static _Atomic uint64_t g_settings[PML_MAX_DEVICES][RELEASE_THRESHOLD + 1];

/* The device a pool belongs to, or -1. */
static int device_of(const void *pool)
{
    for (int device = 0; device < pml_sim_device_count(); device++)
        if (pool == &g_pools[device])
            return device;
    return -1;
}

PML_API int cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    if (device < 0 || device >= pml_sim_device_count())
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    *pool = &g_pools[device];
    return PML_CUDA_OK;
}

PML_API int cudaDeviceGetMemPool(void **pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }

PML_API int cudaMallocAsync(void **pointer, size_t size, void *stream)
{
    pml_sim_graph_note_work(stream);
    return cudaMalloc(pointer, size);
}

PML_API int cudaFreeAsync(void *pointer, void *stream)
{
    pml_sim_graph_note_work(stream);
    return cudaFree(pointer);
}

PML_API int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    int device = device_of(pool);
    if (device < 0 || attribute < REUSE_FOLLOW_EVENTS || attribute > USED_HIGH)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    if (attribute < RELEASE_THRESHOLD)
        *(int *)value = (int)atomic_load(&g_settings[device][attribute]);
    else if (attribute == RELEASE_THRESHOLD)
        *(uint64_t *)value = atomic_load(&g_settings[device][attribute]);
    else if (attribute == RESERVED_CURRENT || attribute == USED_CURRENT)
        *(uint64_t *)value = pml_sim_device_used(device);
    else
        *(uint64_t *)value = pml_sim_device_peak(device);
    return PML_CUDA_OK;
}

PML_API int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    int device = device_of(pool);
    if (device < 0 || attribute < REUSE_FOLLOW_EVENTS || attribute > USED_HIGH)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    if (attribute < RELEASE_THRESHOLD)
        atomic_store(&g_settings[device][attribute], (uint64_t)*(int *)value);
    else if (attribute == RELEASE_THRESHOLD)
        atomic_store(&g_settings[device][attribute], *(uint64_t *)value);
    else
        pml_sim_device_reset_peak(device); /* the only value CUDA takes for the others is 0: start a new high */
    return PML_CUDA_OK;
}

PML_API int cudaMemPoolSetAccess(void *pool, const void *access, size_t count) { return PML_CUDA_OK; }
PML_API int cudaMemPoolTrimTo(void *pool, size_t keep) { return PML_CUDA_OK; }
PML_API int cudaMemPoolCreate(void) { return pml_sim_result(PML_CUDA_NOT_SUPPORTED); }
PML_API int cudaMallocFromPoolAsync(void) { return pml_sim_result(PML_CUDA_NOT_SUPPORTED); }

/* Memory owned by graphs: there is none, a graph holds no allocations here. */
PML_API int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    *(uint64_t *)value = 0;
    return PML_CUDA_OK;
}

PML_API int cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value) { return PML_CUDA_OK; }
PML_API int cudaDeviceGraphMemTrim(int device) { return PML_CUDA_OK; }
