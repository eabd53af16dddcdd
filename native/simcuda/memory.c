/* Runtime API: device memory, pinned host memory, what a pointer is.
 *
 * Ownership: see ranges.c. Threads: any. Locks: only inside ranges.c.
 * Accounting: a device gives out 512-byte units, as the address alignment of cudaMalloc on hardware; a real driver also
 *   takes memory for its context and rounds large blocks to 2 MiB, which PyTorch's allocator asks for anyway.
 */
#include "sim.h"

#define UNIT ((size_t)512)

static int allocate(int device, size_t size, void **pointer)
{
    if (size > SIZE_MAX / 2)
        return CUDA_OUT_OF_MEMORY;
    size = (size + UNIT - 1) / UNIT * UNIT;
    int error = sim_device_reserve(device, size);
    if (error != CUDA_OK)
        return error;
    error = sim_ranges_create(SIM_RANGE_DEVICE, device, size, SIM_CHUNK, pointer);
    if (error != CUDA_OK)
        sim_device_release(device, size);
    return error;
}

SIM_API int cudaMalloc(void **pointer, size_t size)
{
    if (pointer == NULL)
        return sim_error_result(CUDA_INVALID_VALUE);
    *pointer = NULL;
    if (sim_device_count() == 0)
        return sim_error_result(CUDA_NO_DEVICE);
    return sim_error_result(size == 0 ? CUDA_OK : allocate(sim_device_current(), size, pointer));
}

SIM_API int cudaFree(void *pointer)
{
    struct sim_range gone;
    if (pointer == NULL)
        return CUDA_OK;
    int error = sim_ranges_destroy(pointer, SIM_RANGE_DEVICE, &gone);
    if (error == CUDA_OK)
        sim_device_release(gone.device, gone.size);
    return sim_error_result(error);
}

SIM_API int cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (sim_device_count() == 0)
        return sim_error_result(CUDA_NO_DEVICE);
    uint64_t all = sim_device_spec()->total_memory;
    *total = all;
    *free_bytes = all - sim_device_used(sim_device_current());
    return CUDA_OK;
}

/* ---- host memory ---- */

SIM_API int cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
    if (pointer == NULL)
        return sim_error_result(CUDA_INVALID_VALUE);
    *pointer = NULL;
    if (size == 0)
        return CUDA_OK;
    if (size > SIZE_MAX / 2)
        return sim_error_result(CUDA_OUT_OF_MEMORY);
    return sim_error_result(sim_ranges_create(SIM_RANGE_HOST, sim_device_current(), size, SIM_CHUNK, pointer));
}

SIM_API int cudaMallocHost(void **pointer, size_t size)
{
    return cudaHostAlloc(pointer, size, 0);
}

SIM_API int cudaFreeHost(void *pointer)
{
    return sim_error_result(pointer == NULL ? CUDA_OK : sim_ranges_destroy(pointer, SIM_RANGE_HOST, NULL));
}

SIM_API int cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
    if (pointer == NULL || size == 0)
        return sim_error_result(CUDA_INVALID_VALUE);
    return sim_error_result(sim_ranges_register(pointer, size, sim_device_current()));
}

SIM_API int cudaHostUnregister(void *pointer)
{
    int error = sim_ranges_destroy(pointer, SIM_RANGE_REGISTERED, NULL);
    return sim_error_result(error == CUDA_OK ? CUDA_OK : CUDA_HOST_NOT_REGISTERED);
}

SIM_API int cudaHostGetDevicePointer(void **device_pointer, void *host, unsigned flags)
{
    struct sim_range range;
    bool pinned =
        sim_ranges_lookup(host, &range) && (range.kind == SIM_RANGE_HOST || range.kind == SIM_RANGE_REGISTERED);
    *device_pointer = pinned ? host : NULL;
    return sim_error_result(pinned ? CUDA_OK : CUDA_INVALID_VALUE);
}

SIM_API int cudaHostGetFlags(unsigned *flags, void *host)
{
    *flags = 0;
    return CUDA_OK;
}

/* ---- what a pointer is ---- */

SIM_API int cudaPointerGetAttributes(struct cuda_pointer_attributes *attributes, const void *pointer)
{
    struct sim_range range;
    if (attributes == NULL)
        return sim_error_result(CUDA_INVALID_VALUE);
    *attributes = (struct cuda_pointer_attributes){
        .type = CUDA_MEMORY_UNREGISTERED, .device = -2, .host_pointer = (void *)pointer};
    if (!sim_ranges_lookup(pointer, &range))
        return CUDA_OK;
    bool device = range.kind == SIM_RANGE_DEVICE || range.kind == SIM_RANGE_RESERVED;
    attributes->type = device ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST;
    attributes->device = range.device;
    attributes->device_pointer = (void *)pointer;
    attributes->host_pointer = device ? NULL : (void *)pointer;
    return CUDA_OK;
}

/* ---- between processes: not simulated ---- */

#define NOT_SUPPORTED(name) \
    SIM_API int name(void) \
    { \
        return sim_error_result(CUDA_NOT_SUPPORTED); \
    }
NOT_SUPPORTED(cudaIpcGetMemHandle)
NOT_SUPPORTED(cudaIpcOpenMemHandle)
NOT_SUPPORTED(cudaIpcCloseMemHandle)
NOT_SUPPORTED(cudaIpcGetEventHandle)
NOT_SUPPORTED(cudaIpcOpenEventHandle)
NOT_SUPPORTED(cudaMallocManaged)
NOT_SUPPORTED(cudaMallocArray)
NOT_SUPPORTED(cudaMalloc3D)
NOT_SUPPORTED(cudaMallocPitch)
