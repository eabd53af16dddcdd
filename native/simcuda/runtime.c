/* Runtime API: versions, devices and their properties, peer access, entry points of the driver.
 *
 * Ownership: none. Threads: any; the current device is thread-local (device.c). Locks: none; peer access is a set of atomics.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

enum { CUDA_VERSION_SHOWN = 13000 };

PML_API int cudaRuntimeGetVersion(int *version)
{
    *version = CUDA_VERSION_SHOWN;
    return PML_CUDA_OK;
}

PML_API int cudaDriverGetVersion(int *version)
{
    *version = CUDA_VERSION_SHOWN;
    return PML_CUDA_OK;
}

/* ---- devices ---- */

PML_API int cudaGetDeviceCount(int *count)
{
    *count = pml_sim_device_count();
    return pml_sim_result(*count > 0 ? PML_CUDA_OK : PML_CUDA_NO_DEVICE);
}

PML_API int cudaGetDevice(int *device)
{
    *device = pml_sim_device_current();
    return pml_sim_result(pml_sim_device_count() > 0 ? PML_CUDA_OK : PML_CUDA_NO_DEVICE);
}

PML_API int cudaSetDevice(int device) { return pml_sim_result(pml_sim_device_select(device)); }
PML_API int cudaInitDevice(int device, unsigned flags, unsigned more) { return cudaSetDevice(device); }
PML_API int cudaSetDeviceFlags(unsigned flags) { return PML_CUDA_OK; }

PML_API int cudaGetDeviceFlags(unsigned *flags)
{
    *flags = 0;
    return PML_CUDA_OK;
}

PML_API int cudaDeviceReset(void) { return PML_CUDA_OK; }

PML_API int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return pml_sim_result(pml_sim_device_attribute(attribute, device, value));
}

PML_API int cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    if (device < 0 || device >= pml_sim_device_count())
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    snprintf(text, (size_t)size, "0000:%02X:00.0", pml_sim_device_physical(device) + 1);
    return PML_CUDA_OK;
}

PML_API int cudaDeviceGetLimit(size_t *value, int limit)
{
    return pml_sim_result(value ? pml_sim_device_limit(limit, value) : PML_CUDA_INVALID_VALUE);
}

PML_API int cudaDeviceSetLimit(int limit, size_t value)
{
    return pml_sim_result(pml_sim_device_set_limit(limit, value));
}

static int attribute(int number, int device)
{
    int value = 0;
    pml_sim_device_attribute(number, device, &value);
    return value;
}

/* The fields that both versions of cudaDeviceProp have; a macro, since the two structs differ in their layout only. */
#define FILL_PROPERTIES(p, device)                                                            \
    do {                                                                                      \
        const pml_sim_spec *spec = pml_sim_device_spec();                                     \
        memset((p), 0, sizeof *(p));                                                          \
        memcpy((p)->name, spec->name, sizeof(p)->name);                                       \
        pml_sim_device_uuid((device), (p)->uuid);                                             \
        (p)->totalGlobalMem = spec->total_memory;                                             \
        (p)->sharedMemPerBlock = (size_t)attribute(PML_ATTR_SHARED_PER_BLOCK, device);        \
        (p)->regsPerBlock = attribute(PML_ATTR_REGISTERS_PER_BLOCK, device);                  \
        (p)->warpSize = attribute(PML_ATTR_WARP_SIZE, device);                                \
        (p)->memPitch = (size_t)attribute(PML_ATTR_MAX_PITCH, device);                        \
        (p)->maxThreadsPerBlock = attribute(PML_ATTR_MAX_THREADS_PER_BLOCK, device);          \
        for (int i = 0; i < 3; i++) {                                                         \
            (p)->maxThreadsDim[i] = attribute(PML_ATTR_MAX_BLOCK_X + i, device);              \
            (p)->maxGridSize[i] = attribute(PML_ATTR_MAX_GRID_X + i, device);                 \
        }                                                                                     \
        (p)->totalConstMem = (size_t)attribute(PML_ATTR_TOTAL_CONST, device);                 \
        (p)->major = spec->major;                                                             \
        (p)->minor = spec->minor;                                                             \
        (p)->textureAlignment = (size_t)attribute(PML_ATTR_TEXTURE_ALIGNMENT, device);        \
        (p)->texturePitchAlignment = 32;                                                      \
        (p)->multiProcessorCount = spec->sm_count;                                            \
        (p)->canMapHostMemory = 1;                                                            \
        (p)->maxTexture1D = attribute(PML_ATTR_MAX_TEXTURE_1D, device);                       \
        (p)->surfaceAlignment = (size_t)attribute(PML_ATTR_SURFACE_ALIGNMENT, device);        \
        (p)->concurrentKernels = 1;                                                           \
        (p)->pciBusID = attribute(PML_ATTR_PCI_BUS, device);                                  \
        (p)->asyncEngineCount = attribute(PML_ATTR_ASYNC_ENGINES, device);                    \
        (p)->unifiedAddressing = 1;                                                           \
        (p)->memoryBusWidth = spec->bus_width;                                                \
        (p)->l2CacheSize = spec->l2_size;                                                     \
        (p)->maxThreadsPerMultiProcessor = spec->threads_per_sm;                              \
        (p)->streamPrioritiesSupported = 1;                                                   \
        (p)->globalL1CacheSupported = 1;                                                      \
        (p)->localL1CacheSupported = 1;                                                       \
        (p)->sharedMemPerMultiprocessor = (size_t)spec->shared_per_sm;                        \
        (p)->regsPerMultiprocessor = attribute(PML_ATTR_REGISTERS_PER_SM, device);            \
        (p)->computePreemptionSupported = 1;                                                  \
        (p)->cooperativeLaunch = 1;                                                           \
        (p)->sharedMemPerBlockOptin = (size_t)spec->shared_per_block_optin;                   \
        (p)->maxBlocksPerMultiProcessor = attribute(PML_ATTR_BLOCKS_PER_SM, device);          \
        (p)->reservedSharedMemPerBlock = (size_t)attribute(PML_ATTR_SHARED_RESERVED, device); \
        (p)->hostRegisterSupported = 1;                                                       \
        (p)->memoryPoolsSupported = 1;                                                        \
        (p)->clusterLaunch = attribute(PML_ATTR_CLUSTER_LAUNCH, device);                      \
    } while (0)

/* The symbol of CUDA 13. */
PML_API int cudaGetDeviceProperties(pml_device_prop_13 *properties, int device)
{
    if (device < 0 || device >= pml_sim_device_count())
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    FILL_PROPERTIES(properties, device);
    properties->hostNumaId = -1;
    return PML_CUDA_OK;
}

/* The symbol of CUDA 12. */
PML_API int cudaGetDeviceProperties_v2(pml_device_prop_12 *properties, int device)
{
    if (device < 0 || device >= pml_sim_device_count())
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    FILL_PROPERTIES(properties, device);
    properties->clockRate = attribute(PML_ATTR_CLOCK_RATE, device);
    properties->memoryClockRate = attribute(PML_ATTR_MEMORY_CLOCK, device);
    properties->deviceOverlap = 1;
    return PML_CUDA_OK;
}

/* ---- peers: every device reaches every other ---- */

static _Atomic bool g_peers[PML_MAX_DEVICES][PML_MAX_DEVICES];

PML_API int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    int count = pml_sim_device_count();
    if (device < 0 || device >= count || peer < 0 || peer >= count)
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    *can = device != peer;
    return PML_CUDA_OK;
}

PML_API int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int can = 0;
    int error = cudaDeviceCanAccessPeer(&can, pml_sim_device_current(), peer);
    if (error != PML_CUDA_OK || !can)
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    bool before = atomic_exchange(&g_peers[pml_sim_device_current()][peer], true);
    return pml_sim_result(before ? PML_CUDA_PEER_ALREADY_ENABLED : PML_CUDA_OK);
}

PML_API int cudaDeviceDisablePeerAccess(int peer)
{
    if (peer < 0 || peer >= pml_sim_device_count())
        return pml_sim_result(PML_CUDA_INVALID_DEVICE);
    bool before = atomic_exchange(&g_peers[pml_sim_device_current()][peer], false);
    return pml_sim_result(before ? PML_CUDA_OK : PML_CUDA_PEER_NOT_ENABLED);
}

/* ---- the driver behind the runtime ---- */

PML_API int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, int *status)
{
    *function = pml_sim_driver_symbol(symbol);
    if (status != NULL)
        *status = *function ? PML_ENTRY_FOUND : PML_ENTRY_NOT_FOUND;
    return PML_CUDA_OK;
}

PML_API int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, 0, flags, status);
}
