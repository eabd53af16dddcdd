/* Runtime API: versions, devices and their properties, peer access, entry points of the driver.
 *
 * Ownership: none. Threads: any; the current device is thread-local (device.c). Locks: none; peer access is a set of
 * atomics.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

enum { CUDA_VERSION_SHOWN = 13000 };

SIM_API int cudaRuntimeGetVersion(int *version)
{
    *version = CUDA_VERSION_SHOWN;
    return CUDA_OK;
}

SIM_API int cudaDriverGetVersion(int *version)
{
    *version = CUDA_VERSION_SHOWN;
    return CUDA_OK;
}

/* ---- devices ---- */

SIM_API int cudaGetDeviceCount(int *count)
{
    *count = sim_device_count();
    return sim_error_result(*count > 0 ? CUDA_OK : CUDA_NO_DEVICE);
}

SIM_API int cudaGetDevice(int *device)
{
    *device = sim_device_current();
    return sim_error_result(sim_device_count() > 0 ? CUDA_OK : CUDA_NO_DEVICE);
}

SIM_API int cudaSetDevice(int device)
{
    return sim_error_result(sim_device_select(device));
}

SIM_API int cudaInitDevice(int device, unsigned flags, unsigned more)
{
    return cudaSetDevice(device);
}

SIM_API int cudaSetDeviceFlags(unsigned flags)
{
    return CUDA_OK;
}

SIM_API int cudaGetDeviceFlags(unsigned *flags)
{
    *flags = 0;
    return CUDA_OK;
}

SIM_API int cudaDeviceReset(void)
{
    return CUDA_OK;
}

SIM_API int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return sim_error_result(sim_device_attribute(attribute, device, value));
}

SIM_API int cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    if (device < 0 || device >= sim_device_count())
        return sim_error_result(CUDA_INVALID_DEVICE);
    snprintf(text, (size_t)size, "0000:%02X:00.0", sim_device_physical(device) + 1);
    return CUDA_OK;
}

SIM_API int cudaDeviceGetLimit(size_t *value, int limit)
{
    return sim_error_result(value ? sim_device_limit(limit, value) : CUDA_INVALID_VALUE);
}

SIM_API int cudaDeviceSetLimit(int limit, size_t value)
{
    return sim_error_result(sim_device_set_limit(limit, value));
}

static int attribute(int number, int device)
{
    int value = 0;
    sim_device_attribute(number, device, &value);
    return value;
}

/* The fields that both versions of cudaDeviceProp have; a macro, since the two structs differ in their layout only. */
#define FILL_PROPERTIES(p, device) \
    do { \
        const struct sim_spec *spec = sim_device_spec(); \
        memset((p), 0, sizeof *(p)); \
        memcpy((p)->name, spec->name, sizeof(p)->name); \
        sim_device_uuid((device), (p)->uuid); \
        (p)->totalGlobalMem = spec->total_memory; \
        (p)->sharedMemPerBlock = (size_t)attribute(CUDA_ATTR_SHARED_PER_BLOCK, device); \
        (p)->regsPerBlock = attribute(CUDA_ATTR_REGISTERS_PER_BLOCK, device); \
        (p)->warpSize = attribute(CUDA_ATTR_WARP_SIZE, device); \
        (p)->memPitch = (size_t)attribute(CUDA_ATTR_MAX_PITCH, device); \
        (p)->maxThreadsPerBlock = attribute(CUDA_ATTR_MAX_THREADS_PER_BLOCK, device); \
        for (int i = 0; i < 3; i++) { \
            (p)->maxThreadsDim[i] = attribute(CUDA_ATTR_MAX_BLOCK_X + i, device); \
            (p)->maxGridSize[i] = attribute(CUDA_ATTR_MAX_GRID_X + i, device); \
        } \
        (p)->totalConstMem = (size_t)attribute(CUDA_ATTR_TOTAL_CONST, device); \
        (p)->major = spec->major; \
        (p)->minor = spec->minor; \
        (p)->textureAlignment = (size_t)attribute(CUDA_ATTR_TEXTURE_ALIGNMENT, device); \
        (p)->texturePitchAlignment = 32; \
        (p)->multiProcessorCount = spec->sm_count; \
        (p)->canMapHostMemory = 1; \
        (p)->maxTexture1D = attribute(CUDA_ATTR_MAX_TEXTURE_1D, device); \
        (p)->surfaceAlignment = (size_t)attribute(CUDA_ATTR_SURFACE_ALIGNMENT, device); \
        (p)->concurrentKernels = 1; \
        (p)->pciBusID = attribute(CUDA_ATTR_PCI_BUS, device); \
        (p)->asyncEngineCount = attribute(CUDA_ATTR_ASYNC_ENGINES, device); \
        (p)->unifiedAddressing = 1; \
        (p)->memoryBusWidth = spec->bus_width; \
        (p)->l2CacheSize = spec->l2_size; \
        (p)->maxThreadsPerMultiProcessor = spec->threads_per_sm; \
        (p)->streamPrioritiesSupported = 1; \
        (p)->globalL1CacheSupported = 1; \
        (p)->localL1CacheSupported = 1; \
        (p)->sharedMemPerMultiprocessor = (size_t)spec->shared_per_sm; \
        (p)->regsPerMultiprocessor = attribute(CUDA_ATTR_REGISTERS_PER_SM, device); \
        (p)->computePreemptionSupported = 1; \
        (p)->cooperativeLaunch = 1; \
        (p)->sharedMemPerBlockOptin = (size_t)spec->shared_per_block_optin; \
        (p)->maxBlocksPerMultiProcessor = attribute(CUDA_ATTR_BLOCKS_PER_SM, device); \
        (p)->reservedSharedMemPerBlock = (size_t)attribute(CUDA_ATTR_SHARED_RESERVED, device); \
        (p)->hostRegisterSupported = 1; \
        (p)->memoryPoolsSupported = 1; \
        (p)->clusterLaunch = attribute(CUDA_ATTR_CLUSTER_LAUNCH, device); \
    } while (0)

/* The symbol of CUDA 13. */
SIM_API int cudaGetDeviceProperties(struct cuda_device_prop_13 *properties, int device)
{
    if (device < 0 || device >= sim_device_count())
        return sim_error_result(CUDA_INVALID_DEVICE);
    FILL_PROPERTIES(properties, device);
    properties->hostNumaId = -1;
    return CUDA_OK;
}

/* The symbol of CUDA 12. */
SIM_API int cudaGetDeviceProperties_v2(struct cuda_device_prop_12 *properties, int device)
{
    if (device < 0 || device >= sim_device_count())
        return sim_error_result(CUDA_INVALID_DEVICE);
    FILL_PROPERTIES(properties, device);
    properties->clockRate = attribute(CUDA_ATTR_CLOCK_RATE, device);
    properties->memoryClockRate = attribute(CUDA_ATTR_MEMORY_CLOCK, device);
    properties->deviceOverlap = 1;
    return CUDA_OK;
}

/* ---- peers: every device reaches every other ---- */

static _Atomic bool peer_access[SIM_MAX_DEVICES][SIM_MAX_DEVICES];

SIM_API int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    int count = sim_device_count();
    if (device < 0 || device >= count || peer < 0 || peer >= count)
        return sim_error_result(CUDA_INVALID_DEVICE);
    *can = device != peer;
    return CUDA_OK;
}

SIM_API int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int can = 0;
    int error = cudaDeviceCanAccessPeer(&can, sim_device_current(), peer);
    if (error != CUDA_OK || !can)
        return sim_error_result(CUDA_INVALID_DEVICE);
    bool before = atomic_exchange(&peer_access[sim_device_current()][peer], true);
    return sim_error_result(before ? CUDA_PEER_ALREADY_ENABLED : CUDA_OK);
}

SIM_API int cudaDeviceDisablePeerAccess(int peer)
{
    if (peer < 0 || peer >= sim_device_count())
        return sim_error_result(CUDA_INVALID_DEVICE);
    bool before = atomic_exchange(&peer_access[sim_device_current()][peer], false);
    return sim_error_result(before ? CUDA_OK : CUDA_PEER_NOT_ENABLED);
}

/* ---- the driver behind the runtime ---- */

SIM_API int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, int *status)
{
    *function = sim_driver_symbol(symbol);
    if (status != NULL)
        *status = *function ? CUDA_ENTRY_FOUND : CUDA_ENTRY_NOT_FOUND;
    return CUDA_OK;
}

SIM_API int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, 0, flags, status);
}
