/* Driver API: contexts, devices, pointers, modules and kernels; and the table of entry points.
 *
 * Purpose: what PyTorch asks of libcuda.so.1, directly, through libcaffe2_nvrtc.so, or through cudaGetDriverEntryPoint.
 *   The library that bears the name libcuda.so.1 (soname_stub.c) is empty: the functions are here, beside the state they
 *   share with the runtime API.
 * Ownership: contexts and modules are static handles. Threads: any. Locks: none.
 */
#include "sim.h"

#include <string.h>

static char g_contexts[PML_MAX_DEVICES]; /* their addresses are the handles of the primary contexts */
static char g_module, g_function;

/* ---- start, versions, errors ---- */

PML_API int cuInit(unsigned flags) { return pml_sim_device_count() > 0 ? PML_CUDA_OK : PML_CUDA_NO_DEVICE; }

PML_API int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return PML_CUDA_OK;
}

PML_API int cuGetErrorString(int error, const char **text)
{
    *text = pml_sim_error_text(error);
    return *text ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE;
}

PML_API int cuGetErrorName(int error, const char **name)
{
    *name = pml_sim_error_name(error);
    return *name ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE;
}

/* ---- devices ---- */

static bool is_device(int device) { return device >= 0 && device < pml_sim_device_count(); }

PML_API int cuDeviceGetCount(int *count)
{
    *count = pml_sim_device_count();
    return PML_CUDA_OK;
}

PML_API int cuDeviceGet(int *device, int ordinal)
{
    if (!is_device(ordinal))
        return PML_CUDA_INVALID_DEVICE;
    *device = ordinal;
    return PML_CUDA_OK;
}

PML_API int cuDeviceGetName(char *name, int size, int device)
{
    if (!is_device(device) || size < 1)
        return PML_CUDA_INVALID_DEVICE;
    strncpy(name, pml_sim_device_spec()->name, (size_t)size - 1);
    name[size - 1] = '\0';
    return PML_CUDA_OK;
}

PML_API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return pml_sim_device_attribute(attribute, device, value);
}

PML_API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    if (!is_device(device))
        return PML_CUDA_INVALID_DEVICE;
    *bytes = pml_sim_device_spec()->total_memory;
    return PML_CUDA_OK;
}

PML_API int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    if (!is_device(device))
        return PML_CUDA_INVALID_DEVICE;
    pml_sim_device_uuid(device, uuid);
    return PML_CUDA_OK;
}

PML_API int cuDeviceGetUuid(unsigned char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

/* ---- contexts: the primary one of each device ---- */

PML_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    if (!is_device(device))
        return PML_CUDA_INVALID_DEVICE;
    *flags = 0;
    *active = pml_sim_device_active(device);
    return PML_CUDA_OK;
}

PML_API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (!is_device(device))
        return PML_CUDA_INVALID_DEVICE;
    *context = &g_contexts[device];
    return PML_CUDA_OK;
}

PML_API int cuDevicePrimaryCtxRelease_v2(int device) { return PML_CUDA_OK; }

PML_API int cuCtxGetCurrent(void **context)
{
    int device = pml_sim_device_current();
    *context = is_device(device) && pml_sim_device_active(device) ? &g_contexts[device] : NULL;
    return PML_CUDA_OK;
}

PML_API int cuCtxSetCurrent(void *context)
{
    if (context == NULL)
        return PML_CUDA_OK;
    ptrdiff_t device = (char *)context - g_contexts;
    return device >= 0 && device < PML_MAX_DEVICES ? pml_sim_device_select((int)device) : PML_CUDA_INVALID_CONTEXT;
}

PML_API int cuCtxGetDevice(int *device)
{
    *device = pml_sim_device_current();
    return PML_CUDA_OK;
}

PML_API int cuCtxSynchronize(void) { return PML_CUDA_OK; }

PML_API int cuCtxGetLimit(size_t *value, int limit)
{
    return value ? pml_sim_device_limit(limit, value) : PML_CUDA_INVALID_VALUE;
}

PML_API int cuCtxSetLimit(int limit, size_t value) { return pml_sim_device_set_limit(limit, value); }

/* ---- pointers and memory ---- */

PML_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    uint64_t all = pml_sim_device_spec()->total_memory;
    *total = all;
    *free_bytes = all - pml_sim_device_used(pml_sim_device_current());
    return PML_CUDA_OK;
}

PML_API int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    pml_range range;
    if (!pml_range_lookup((const void *)(uintptr_t)address, &range))
        return PML_CUDA_NOT_FOUND;
    uint64_t start = range.base;
    size_t bytes = range.size;
    if (range.kind == PML_RANGE_RESERVED && pml_sim_mapping_find(address, &start, &bytes) != PML_CUDA_OK)
        return PML_CUDA_NOT_FOUND;
    if (base != NULL)
        *base = start;
    if (size != NULL)
        *size = bytes;
    return PML_CUDA_OK;
}

enum pointer_attribute {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    IS_MANAGED = 8,
    ORDINAL = 9
};

PML_API int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
    pml_range range;
    if (data == NULL || !pml_range_lookup((const void *)(uintptr_t)address, &range))
        return PML_CUDA_INVALID_VALUE;
    bool device = range.kind == PML_RANGE_DEVICE || range.kind == PML_RANGE_RESERVED;
    switch (attribute) {
    case CONTEXT: *(void **)data = &g_contexts[range.device]; return PML_CUDA_OK;
    case MEMORY_TYPE: *(unsigned *)data = device ? PML_MEMORY_DEVICE : PML_MEMORY_HOST; return PML_CUDA_OK;
    case DEVICE_POINTER: *(uint64_t *)data = address; return PML_CUDA_OK;
    case HOST_POINTER: *(uint64_t *)data = device ? 0 : address; return device ? PML_CUDA_INVALID_VALUE : PML_CUDA_OK;
    case IS_MANAGED: *(unsigned *)data = 0; return PML_CUDA_OK;
    case ORDINAL: *(int *)data = range.device; return PML_CUDA_OK;
    default: return PML_CUDA_NOT_SUPPORTED;
    }
}

/* Kernels wait on such words; with no kernels nobody reads them. */
PML_API int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags)
{
    return pml_range_copy((void *)(uintptr_t)address, &value, sizeof value);
}

PML_API int cuMemsetD32Async(uint64_t address, unsigned value, size_t count, void *stream)
{
    if (value == 0)
        return pml_range_fill((void *)(uintptr_t)address, 0, 4 * count);
    int error = PML_CUDA_OK;
    for (size_t i = 0; i < count && error == PML_CUDA_OK; i++)
        error = pml_range_copy((void *)(uintptr_t)(address + 4 * i), &value, sizeof value);
    return error;
}

/* ---- modules and kernels compiled at run time: accepted, never run ---- */

PML_API int cuModuleLoadData(void **module, const void *image)
{
    *module = &g_module;
    return PML_CUDA_OK;
}

PML_API int cuModuleLoadDataEx(void **module, const void *image) { return cuModuleLoadData(module, image); }
PML_API int cuModuleLoad(void **module, const char *path) { return cuModuleLoadData(module, path); }
PML_API int cuModuleUnload(void *module) { return PML_CUDA_OK; }

PML_API int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = &g_function;
    return PML_CUDA_OK;
}

PML_API int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    *value = attribute == 0 ? 1024 : 0; /* 0: CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    return PML_CUDA_OK;
}

PML_API int cuFuncSetAttribute(void *function, int attribute, int value) { return PML_CUDA_OK; }
PML_API int cuFuncSetCacheConfig(void *function, int config) { return PML_CUDA_OK; }

PML_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                           void **extra)
{
    pml_sim_graph_note_work(stream);
    return PML_CUDA_OK;
}

PML_API int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                      void *stream, void **arguments)
{
    pml_sim_graph_note_work(stream);
    return PML_CUDA_OK;
}

PML_API int cuLaunchKernelEx(const pml_driver_launch_config *config, void *function, void **arguments, void **extra)
{
    pml_sim_graph_note_work(config->stream);
    return PML_CUDA_OK;
}

PML_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int block_size, size_t shared)
{
    if (block_size < 1)
        return PML_CUDA_INVALID_VALUE;
    *blocks = pml_sim_device_spec()->threads_per_sm / block_size;
    return PML_CUDA_OK;
}

PML_API int cuOccupancyMaxActiveClusters(int *clusters, void *function, const pml_driver_launch_config *config)
{
    *clusters = pml_sim_device_spec()->sm_count;
    return PML_CUDA_OK;
}

PML_API int cuTensorMapEncodeTiled(void *map)
{
    memset(map, 0, PML_TENSOR_MAP_SIZE);
    return PML_CUDA_OK;
}

PML_API int cuTensorMapEncodeIm2col(void *map) { return cuTensorMapEncodeTiled(map); }

PML_API int cuLinkCreate_v2(void) { return PML_CUDA_NOT_SUPPORTED; }
PML_API int cuLinkAddData_v2(void) { return PML_CUDA_NOT_SUPPORTED; }
PML_API int cuLinkComplete(void) { return PML_CUDA_NOT_SUPPORTED; }

/* ---- entry points by name, without the version suffix, as cudaGetDriverEntryPoint is asked ---- */

#define VMM_FUNCTIONS(X)              \
    X(cuMemAddressReserve)            \
    X(cuMemAddressFree)               \
    X(cuMemCreate)                    \
    X(cuMemRelease)                   \
    X(cuMemMap)                       \
    X(cuMemUnmap)                     \
    X(cuMemSetAccess)                 \
    X(cuMemGetAllocationGranularity)  \
    X(cuMemExportToShareableHandle)   \
    X(cuMemImportFromShareableHandle) \
    X(cuMemRetainAllocationHandle)    \
    X(cuMemGetAllocationPropertiesFromHandle)

#define DECLARE(name) extern int name();
VMM_FUNCTIONS(DECLARE)

#define ENTRY(name) {#name, (void (*)(void))name},
#define ENTRY_AS(text, name) {text, (void (*)(void))name},
static const struct {
    const char *name;
    void (*function)(void);
} k_entries[] = {
    VMM_FUNCTIONS(ENTRY) ENTRY(cuDeviceGet) ENTRY(cuDeviceGetCount) ENTRY(cuDeviceGetName) ENTRY(cuDeviceGetAttribute)
        ENTRY_AS("cuDeviceGetUuid", cuDeviceGetUuid_v2) ENTRY_AS("cuDeviceTotalMem", cuDeviceTotalMem_v2)
            ENTRY(cuDevicePrimaryCtxGetState) ENTRY(cuDevicePrimaryCtxRetain) ENTRY_AS(
                "cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2) ENTRY(cuCtxGetCurrent) ENTRY(cuCtxSetCurrent)
                ENTRY(cuCtxGetDevice) ENTRY(cuCtxGetLimit) ENTRY(cuCtxSetLimit) ENTRY(cuCtxSynchronize) ENTRY_AS("cuMemGetAddressRange", cuMemGetAddressRange_v2)
                    ENTRY_AS("cuMemGetInfo", cuMemGetInfo_v2) ENTRY(cuMemsetD32Async) ENTRY(cuPointerGetAttribute)
                        ENTRY_AS("cuStreamWriteValue32", cuStreamWriteValue32_v2) ENTRY(cuTensorMapEncodeTiled)
                            ENTRY(cuGetErrorString) ENTRY(cuGetErrorName) ENTRY(cuInit) ENTRY(cuDriverGetVersion)};

void *pml_sim_driver_symbol(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof k_entries / sizeof k_entries[0]; i++)
        if (strcmp(k_entries[i].name, name) == 0)
            return *(void **)&k_entries[i].function;
    return NULL;
}
