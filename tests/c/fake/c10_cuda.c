/* Stands for libc10_cuda.so: the caching allocator's calls, and host memory of its own, which is no tensor. */
#include <stdlib.h>

#include "runtime.h"

void c10_cuda_report(void *pointer, int64_t size, size_t allocated, size_t reserved, int type, int index)
{
    struct fake_device device = {(int8_t)type, (int8_t)index};
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(pointer, size, allocated, reserved, device);
}

int c10_cuda_record(void *event, void *stream)
{
    return cudaEventRecord(event, stream);
}

int c10_cuda_record_flags(void *event, void *stream, unsigned flags)
{
    return cudaEventRecordWithFlags(event, stream, flags);
}

int c10_cuda_query(void *event)
{
    return cudaEventQuery(event);
}

int c10_cuda_synchronize(void *event)
{
    return cudaEventSynchronize(event);
}

int c10_cuda_free(void *pointer)
{
    return cudaFree(pointer);
}

int c10_cuda_stream_synchronize(void *stream)
{
    return cudaStreamSynchronize(stream);
}

int c10_cuda_device_synchronize(void)
{
    return cudaDeviceSynchronize();
}

void *c10_cuda_host_allocate(size_t size)
{
    void *pointer = NULL;
    return posix_memalign(&pointer, 64, size) == 0 ? pointer : NULL;
}

void c10_cuda_host_free(void *pointer)
{
    free(pointer);
}
