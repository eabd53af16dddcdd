/* Driver API: contexts, devices, pointers, modules and kernels; and the table of entry points.
 *
 * Purpose: what PyTorch asks of libcuda.so.1, directly, through libcaffe2_nvrtc.so, or through cudaGetDriverEntryPoint.
 *   The library that bears the name libcuda.so.1 (soname_stub.c) is empty: the functions are here, beside the state
 * they share with the runtime API. Ownership: contexts and modules are static handles. Threads: any. Locks: none.
 */
#include "sim.h"

#include <string.h>

static char all_contexts[SIM_MAX_DEVICES]; /* their addresses are the handles of the primary contexts */
static char the_module, the_function;

/* ---- start, versions, errors ---- */

SIM_API int cuInit(unsigned flags)
{
    return sim_device_count() > 0 ? CUDA_OK : CUDA_NO_DEVICE;
}

SIM_API int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_OK;
}

SIM_API int cuGetErrorString(int error, const char **text)
{
    *text = sim_error_text(error);
    return *text ? CUDA_OK : CUDA_INVALID_VALUE;
}

SIM_API int cuGetErrorName(int error, const char **name)
{
    *name = sim_error_name(error);
    return *name ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- devices ---- */

static bool is_device(int device)
{
    return device >= 0 && device < sim_device_count();
}

SIM_API int cuDeviceGetCount(int *count)
{
    *count = sim_device_count();
    return CUDA_OK;
}

SIM_API int cuDeviceGet(int *device, int ordinal)
{
    if (!is_device(ordinal))
        return CUDA_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_OK;
}

SIM_API int cuDeviceGetName(char *name, int size, int device)
{
    if (!is_device(device) || size < 1)
        return CUDA_INVALID_DEVICE;
    strncpy(name, sim_device_spec()->name, (size_t)size - 1);
    name[size - 1] = '\0';
    return CUDA_OK;
}

SIM_API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return sim_device_attribute(attribute, device, value);
}

SIM_API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    if (!is_device(device))
        return CUDA_INVALID_DEVICE;
    *bytes = sim_device_spec()->total_memory;
    return CUDA_OK;
}

SIM_API int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    if (!is_device(device))
        return CUDA_INVALID_DEVICE;
    sim_device_uuid(device, uuid);
    return CUDA_OK;
}

SIM_API int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

/* ---- contexts: the primary one of each device ---- */

SIM_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    if (!is_device(device))
        return CUDA_INVALID_DEVICE;
    *flags = 0;
    *active = sim_device_active(device);
    return CUDA_OK;
}

SIM_API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (!is_device(device))
        return CUDA_INVALID_DEVICE;
    *context = &all_contexts[device];
    return CUDA_OK;
}

SIM_API int cuDevicePrimaryCtxRelease_v2(int device)
{
    return CUDA_OK;
}

SIM_API int cuCtxGetCurrent(void **context)
{
    int device = sim_device_current();
    *context = is_device(device) && sim_device_active(device) ? &all_contexts[device] : NULL;
    return CUDA_OK;
}

SIM_API int cuCtxSetCurrent(void *context)
{
    if (context == NULL)
        return CUDA_OK;
    ptrdiff_t device = (char *)context - all_contexts;
    return device >= 0 && device < SIM_MAX_DEVICES ? sim_device_select((int)device) : CUDA_INVALID_CONTEXT;
}

SIM_API int cuCtxGetDevice(int *device)
{
    *device = sim_device_current();
    return CUDA_OK;
}

SIM_API int cuCtxSynchronize(void)
{
    return CUDA_OK;
}

SIM_API int cuCtxGetLimit(size_t *value, int limit)
{
    return value ? sim_device_limit(limit, value) : CUDA_INVALID_VALUE;
}

SIM_API int cuCtxSetLimit(int limit, size_t value)
{
    return sim_device_set_limit(limit, value);
}

/* ---- pointers and memory ---- */

SIM_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    uint64_t all = sim_device_spec()->total_memory;
    *total = all;
    *free_bytes = all - sim_device_used(sim_device_current());
    return CUDA_OK;
}

SIM_API int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    struct sim_range range;
    if (!sim_ranges_lookup((const void *)(uintptr_t)address, &range))
        return CUDA_NOT_FOUND;
    uint64_t start = range.base;
    size_t bytes = range.size;
    if (range.kind == SIM_RANGE_RESERVED && sim_vmm_find_mapping(address, &start, &bytes) != CUDA_OK)
        return CUDA_NOT_FOUND;
    if (base != NULL)
        *base = start;
    if (size != NULL)
        *size = bytes;
    return CUDA_OK;
}

enum pointer_attribute {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    IS_MANAGED = 8,
    ORDINAL = 9
};

SIM_API int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
    struct sim_range range;
    if (data == NULL || !sim_ranges_lookup((const void *)(uintptr_t)address, &range))
        return CUDA_INVALID_VALUE;
    bool device = range.kind == SIM_RANGE_DEVICE || range.kind == SIM_RANGE_RESERVED;
    switch (attribute) {
    case CONTEXT: *(void **)data = &all_contexts[range.device]; return CUDA_OK;
    case MEMORY_TYPE: *(unsigned *)data = device ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST; return CUDA_OK;
    case DEVICE_POINTER: *(uint64_t *)data = address; return CUDA_OK;
    case HOST_POINTER: *(uint64_t *)data = device ? 0 : address; return device ? CUDA_INVALID_VALUE : CUDA_OK;
    case IS_MANAGED: *(unsigned *)data = 0; return CUDA_OK;
    case ORDINAL: *(int *)data = range.device; return CUDA_OK;
    default: return CUDA_NOT_SUPPORTED;
    }
}

/* Kernels wait on such words; with no kernels nobody reads them. */
SIM_API int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags)
{
    return sim_ranges_copy((void *)(uintptr_t)address, &value, sizeof value);
}

/* By its first name, which PyTorch 2.6 looks up when it words an out-of-memory message. */
SIM_API int cuStreamWriteValue32(void *stream, uint64_t address, uint32_t value, unsigned flags)
{
    return cuStreamWriteValue32_v2(stream, address, value, flags);
}

SIM_API int cuMemsetD32Async(uint64_t address, unsigned value, size_t count, void *stream)
{
    if (value == 0)
        return sim_ranges_fill((void *)(uintptr_t)address, 0, 4 * count);
    int error = CUDA_OK;
    for (size_t i = 0; i < count && error == CUDA_OK; i++)
        error = sim_ranges_copy((void *)(uintptr_t)(address + 4 * i), &value, sizeof value);
    return error;
}

/* ---- modules and kernels compiled at run time: accepted, never run ---- */

SIM_API int cuModuleLoadData(void **module, const void *image)
{
    *module = &the_module;
    return CUDA_OK;
}

SIM_API int cuModuleLoadDataEx(void **module, const void *image)
{
    return cuModuleLoadData(module, image);
}

SIM_API int cuModuleLoad(void **module, const char *path)
{
    return cuModuleLoadData(module, path);
}

SIM_API int cuModuleUnload(void *module)
{
    return CUDA_OK;
}

SIM_API int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = &the_function;
    return CUDA_OK;
}

SIM_API int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    *value = attribute == 0 ? 1024 : 0; /* 0: CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    return CUDA_OK;
}

SIM_API int cuFuncSetAttribute(void *function, int attribute, int value)
{
    return CUDA_OK;
}

SIM_API int cuFuncSetCacheConfig(void *function, int config)
{
    return CUDA_OK;
}

SIM_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                           void **extra)
{
    sim_graph_note_work(stream);
    return CUDA_OK;
}

SIM_API int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                      void *stream, void **arguments)
{
    sim_graph_note_work(stream);
    return CUDA_OK;
}

SIM_API int cuLaunchKernelEx(const struct cuda_driver_launch_config *config, void *function, void **arguments,
                             void **extra)
{
    sim_graph_note_work(config->stream);
    return CUDA_OK;
}

SIM_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int block_size, size_t shared)
{
    if (block_size < 1)
        return CUDA_INVALID_VALUE;
    *blocks = sim_device_spec()->threads_per_sm / block_size;
    return CUDA_OK;
}

SIM_API int cuOccupancyMaxActiveClusters(int *clusters, void *function, const struct cuda_driver_launch_config *config)
{
    *clusters = sim_device_spec()->sm_count;
    return CUDA_OK;
}

SIM_API int cuTensorMapEncodeTiled(void *map)
{
    memset(map, 0, CUDA_TENSOR_MAP_SIZE);
    return CUDA_OK;
}

SIM_API int cuTensorMapEncodeIm2col(void *map)
{
    return cuTensorMapEncodeTiled(map);
}

SIM_API int cuLinkCreate_v2(void)
{
    return CUDA_NOT_SUPPORTED;
}

SIM_API int cuLinkAddData_v2(void)
{
    return CUDA_NOT_SUPPORTED;
}

SIM_API int cuLinkComplete(void)
{
    return CUDA_NOT_SUPPORTED;
}

/* ---- entry points by name, without the version suffix, as cudaGetDriverEntryPoint is asked ---- */

#define VMM_FUNCTIONS(X) \
    X(cuMemAddressReserve) \
    X(cuMemAddressFree) \
    X(cuMemCreate) \
    X(cuMemRelease) \
    X(cuMemMap) \
    X(cuMemUnmap) \
    X(cuMemSetAccess) \
    X(cuMemGetAllocationGranularity) \
    X(cuMemExportToShareableHandle) \
    X(cuMemImportFromShareableHandle) \
    X(cuMemRetainAllocationHandle) \
    X(cuMemGetAllocationPropertiesFromHandle)

#define DECLARE(name) extern int name();
VMM_FUNCTIONS(DECLARE)

#define ENTRY(name) {#name, (void (*)(void))name},
#define ENTRY_AS(text, name) {text, (void (*)(void))name},
static const struct {
    const char *name;
    void (*function)(void);
} entries[] = {
    /* clang-format off */
    VMM_FUNCTIONS(ENTRY)
    ENTRY(cuDeviceGet) ENTRY(cuDeviceGetCount) ENTRY(cuDeviceGetName) ENTRY(cuDeviceGetAttribute)
    ENTRY_AS("cuDeviceGetUuid", cuDeviceGetUuid_v2) ENTRY_AS("cuDeviceTotalMem", cuDeviceTotalMem_v2)
    ENTRY(cuDevicePrimaryCtxGetState) ENTRY(cuDevicePrimaryCtxRetain)
    ENTRY_AS("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2) ENTRY(cuCtxGetCurrent)
    ENTRY(cuCtxSetCurrent) ENTRY(cuCtxGetDevice) ENTRY(cuCtxGetLimit) ENTRY(cuCtxSetLimit) ENTRY(cuCtxSynchronize)
    ENTRY_AS("cuMemGetAddressRange", cuMemGetAddressRange_v2) ENTRY_AS("cuMemGetInfo", cuMemGetInfo_v2)
    ENTRY(cuMemsetD32Async) ENTRY(cuPointerGetAttribute) ENTRY_AS("cuStreamWriteValue32", cuStreamWriteValue32_v2)
    ENTRY(cuTensorMapEncodeTiled) ENTRY(cuGetErrorString) ENTRY(cuGetErrorName) ENTRY(cuInit)
    ENTRY(cuDriverGetVersion)
    /* clang-format on */
};

void *sim_driver_symbol(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof entries / sizeof entries[0]; i++)
        if (strcmp(entries[i].name, name) == 0)
            return *(void **)&entries[i].function;
    return NULL;
}
