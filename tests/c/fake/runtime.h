/* What the fake allocator libraries call: the CUDA functions and the report function, which tell what reached them. */
#ifndef FAKE_RUNTIME_H
#define FAKE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

struct fake_device {
    int8_t type;
    int8_t index;
};

struct fake_calls {
    int report, record, record_flags, query, synchronize, device_free, stream_synchronize, device_synchronize;
    void *pointer;
    int64_t size;
    size_t allocated;
    size_t reserved;
    struct fake_device device;
    void *event;
    void *stream;
    unsigned flags;
    void *freed;
};

extern struct fake_calls fake_calls;
extern int fake_result; /* what the CUDA functions return */

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *pointer, int64_t size, size_t allocated,
                                                           size_t reserved, struct fake_device device);
int cudaEventRecord(void *event, void *stream);
int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags);
int cudaEventQuery(void *event);
int cudaEventSynchronize(void *event);
int cudaFree(void *pointer);
int cudaStreamSynchronize(void *stream);
int cudaDeviceSynchronize(void);

/* of libc10.so */
void *c10_allocate(size_t size);
void c10_free(void *pointer);

/* of libc10_cuda.so */
void c10_cuda_report(void *pointer, int64_t size, size_t allocated, size_t reserved, int type, int index);
int c10_cuda_record(void *event, void *stream);
int c10_cuda_record_flags(void *event, void *stream, unsigned flags);
int c10_cuda_query(void *event);
int c10_cuda_synchronize(void *event);
int c10_cuda_free(void *pointer);
int c10_cuda_stream_synchronize(void *stream);
int c10_cuda_device_synchronize(void);
void *c10_cuda_host_allocate(size_t size);
void c10_cuda_host_free(void *pointer);

#endif
