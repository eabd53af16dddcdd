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
        return PML_CUDA_OUT_OF_MEMORY;
    size = (size + UNIT - 1) / UNIT * UNIT;
    int error = pml_sim_device_reserve(device, size);
    if (error != PML_CUDA_OK)
        return error;
    error = pml_range_create(PML_RANGE_DEVICE, device, size, PML_CHUNK, pointer);
    if (error != PML_CUDA_OK)
        pml_sim_device_release(device, size);
    return error;
}

PML_API int cudaMalloc(void **pointer, size_t size)
{
    if (pointer == NULL)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    *pointer = NULL;
    if (pml_sim_device_count() == 0)
        return pml_sim_result(PML_CUDA_NO_DEVICE);
    return pml_sim_result(size == 0 ? PML_CUDA_OK : allocate(pml_sim_device_current(), size, pointer));
}

PML_API int cudaFree(void *pointer)
{
    pml_range gone;
    if (pointer == NULL)
        return PML_CUDA_OK;
    int error = pml_range_destroy(pointer, PML_RANGE_DEVICE, &gone);
    if (error == PML_CUDA_OK)
        pml_sim_device_release(gone.device, gone.size);
    return pml_sim_result(error);
}

PML_API int cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (pml_sim_device_count() == 0)
        return pml_sim_result(PML_CUDA_NO_DEVICE);
    uint64_t all = pml_sim_device_spec()->total_memory;
    *total = all;
    *free_bytes = all - pml_sim_device_used(pml_sim_device_current());
    return PML_CUDA_OK;
}

/* ---- host memory ---- */

PML_API int cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
    if (pointer == NULL)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    *pointer = NULL;
    if (size == 0)
        return PML_CUDA_OK;
    if (size > SIZE_MAX / 2)
        return pml_sim_result(PML_CUDA_OUT_OF_MEMORY);
    return pml_sim_result(pml_range_create(PML_RANGE_HOST, pml_sim_device_current(), size, PML_CHUNK, pointer));
}

PML_API int cudaMallocHost(void **pointer, size_t size) { return cudaHostAlloc(pointer, size, 0); }

PML_API int cudaFreeHost(void *pointer)
{
    return pml_sim_result(pointer == NULL ? PML_CUDA_OK : pml_range_destroy(pointer, PML_RANGE_HOST, NULL));
}

PML_API int cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
    if (pointer == NULL || size == 0)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    return pml_sim_result(pml_range_register(pointer, size, pml_sim_device_current()));
}

PML_API int cudaHostUnregister(void *pointer)
{
    int error = pml_range_destroy(pointer, PML_RANGE_REGISTERED, NULL);
    return pml_sim_result(error == PML_CUDA_OK ? PML_CUDA_OK : PML_CUDA_HOST_NOT_REGISTERED);
}

PML_API int cudaHostGetDevicePointer(void **device_pointer, void *host, unsigned flags)
{
    pml_range range;
    bool pinned =
        pml_range_lookup(host, &range) && (range.kind == PML_RANGE_HOST || range.kind == PML_RANGE_REGISTERED);
    *device_pointer = pinned ? host : NULL;
    return pml_sim_result(pinned ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE);
}

PML_API int cudaHostGetFlags(unsigned *flags, void *host)
{
    *flags = 0;
    return PML_CUDA_OK;
}

/* ---- what a pointer is ---- */

PML_API int cudaPointerGetAttributes(pml_pointer_attributes *attributes, const void *pointer)
{
    pml_range range;
    if (attributes == NULL)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    *attributes =
        (pml_pointer_attributes){.type = PML_MEMORY_UNREGISTERED, .device = -2, .host_pointer = (void *)pointer};
    if (!pml_range_lookup(pointer, &range))
        return PML_CUDA_OK;
    bool device = range.kind == PML_RANGE_DEVICE || range.kind == PML_RANGE_RESERVED;
    attributes->type = device ? PML_MEMORY_DEVICE : PML_MEMORY_HOST;
    attributes->device = range.device;
    attributes->device_pointer = (void *)pointer;
    attributes->host_pointer = device ? NULL : (void *)pointer;
    return PML_CUDA_OK;
}

/* ---- between processes: not simulated ---- */

#define NOT_SUPPORTED(name) \
    PML_API int name(void) { return pml_sim_result(PML_CUDA_NOT_SUPPORTED); }
NOT_SUPPORTED(cudaIpcGetMemHandle)
NOT_SUPPORTED(cudaIpcOpenMemHandle)
NOT_SUPPORTED(cudaIpcCloseMemHandle)
NOT_SUPPORTED(cudaIpcGetEventHandle)
NOT_SUPPORTED(cudaIpcOpenEventHandle)
NOT_SUPPORTED(cudaMallocManaged)
NOT_SUPPORTED(cudaMallocArray)
NOT_SUPPORTED(cudaMalloc3D)
NOT_SUPPORTED(cudaMallocPitch)
