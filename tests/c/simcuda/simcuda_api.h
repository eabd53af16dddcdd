/* The calls of the CUDA API that test_simcuda.c makes, and the library's own functions. */
#ifndef PML_SIMCUDA_API_H
#define PML_SIMCUDA_API_H

#include <stddef.h>
#include <stdint.h>

struct dim3 {
    unsigned x, y, z;
};

struct pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
};

struct allocation_prop {
    int type, handle_types, location_type, location_id;
    void *metadata;
    unsigned char flags[8];
};

struct device_spec {
    char name[256];
    uint64_t total_memory;
    int32_t major, minor, sm_count, threads_per_sm, shared_per_sm, shared_per_block_optin, l2_size, bus_width;
};

int pml_simcuda_configure(const struct device_spec *spec, int count);
uint64_t pml_simcuda_used(int device);

int cudaGetDeviceCount(int *count);
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaMalloc(void **pointer, size_t size);
int cudaFree(void *pointer);
int cudaMemGetInfo(size_t *left, size_t *total);
int cudaHostAlloc(void **pointer, size_t size, unsigned flags);
int cudaFreeHost(void *pointer);
int cudaHostRegister(void *pointer, size_t size, unsigned flags);
int cudaHostUnregister(void *pointer);
int cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size, void *stream);
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                      int kind, void *stream);
int cudaMemset(void *to, int value, size_t size);
int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cudaStreamDestroy(void *stream);
int cudaStreamGetPriority(void *stream, int *priority);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamIsCapturing(void *stream, int *status);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventRecord(void *event, void *stream);
int cudaEventElapsedTime(float *milliseconds, void *start, void *end);
int cudaEventDestroy(void *event);
int cudaGraphGetNodes(void *graph, void **nodes, size_t *count);
int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *executable, void *stream);
int cudaGraphExecDestroy(void *executable);
int cudaGraphDestroy(void *graph);
int cudaUserObjectCreate(void **object, void *data, void (*destroy)(void *), unsigned references, unsigned flags);
int cudaUserObjectRelease(void *object, unsigned count);
int cudaGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags);
int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                     void *stream);
unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, void *stream);
int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void *stream);

int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t wish, unsigned long long flags);
int cuMemAddressFree(uint64_t address, size_t size);
int cuMemCreate(uint64_t *handle, size_t size, const struct allocation_prop *prop, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap(uint64_t address, size_t size);
int cuMemRetainAllocationHandle(uint64_t *handle, void *address);

#endif
