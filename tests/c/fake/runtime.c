/* The CUDA runtime and the profiler's report function, as far as the fake libraries call them. */
#include "runtime.h"

struct fake_calls fake_calls;
int fake_result;

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *pointer, int64_t size, size_t allocated,
                                                           size_t reserved, struct fake_device device)
{
    fake_calls.report++;
    fake_calls.pointer = pointer;
    fake_calls.size = size;
    fake_calls.allocated = allocated;
    fake_calls.reserved = reserved;
    fake_calls.device = device;
}

int cudaEventRecord(void *event, void *stream)
{
    fake_calls.record++;
    fake_calls.event = event;
    fake_calls.stream = stream;
    return fake_result;
}

int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    fake_calls.record_flags++;
    fake_calls.event = event;
    fake_calls.stream = stream;
    fake_calls.flags = flags;
    return fake_result;
}

int cudaEventQuery(void *event)
{
    fake_calls.query++;
    fake_calls.event = event;
    return fake_result;
}

int cudaEventSynchronize(void *event)
{
    fake_calls.synchronize++;
    fake_calls.event = event;
    return fake_result;
}

int cudaFree(void *pointer)
{
    fake_calls.device_free++;
    fake_calls.freed = pointer;
    return fake_result;
}

int cudaStreamSynchronize(void *stream)
{
    fake_calls.stream_synchronize++;
    fake_calls.stream = stream;
    return fake_result;
}

int cudaDeviceSynchronize(void)
{
    fake_calls.device_synchronize++;
    return fake_result;
}
