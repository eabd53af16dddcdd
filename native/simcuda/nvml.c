/* NVML: what PyTorch asks of libnvidia-ml.so.1: device counts before CUDA starts, and the memory lines of its OOM
 * message.
 *
 * Purpose: without it a machine with a real driver would answer for its real GPUs. NVML counts physical devices and
 *   does not know CUDA_VISIBLE_DEVICES.
 * Ownership: static handles. Threads: any. Locks: none.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum nvml_result { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long used;
};
struct nvml_memory {
    unsigned long long total, free, used;
};

static char all_devices[SIM_MAX_DEVICES]; /* their addresses are the handles, by physical index */

static int index_of(const void *device)
{
    ptrdiff_t index = (const char *)device - all_devices;
    return index >= 0 && index < sim_device_physical_count() ? (int)index : -1;
}

static uint64_t used_by_physical(int index)
{
    for (int device = 0; device < sim_device_count(); device++)
        if (sim_device_physical(device) == index)
            return sim_device_used(device);
    return 0;
}

SIM_API int nvmlInit(void)
{
    return OK;
}

SIM_API int nvmlInit_v2(void)
{
    return OK;
}

SIM_API int nvmlInitWithFlags(unsigned flags)
{
    return OK;
}

SIM_API int nvmlShutdown(void)
{
    return OK;
}

SIM_API const char *nvmlErrorString(int result)
{
    return result == OK ? "Success" : "Not supported by the simulated GPU";
}

SIM_API int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)sim_device_physical_count();
    return OK;
}

SIM_API int nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

SIM_API int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return OK;
}

SIM_API int nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

SIM_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index >= (unsigned)sim_device_physical_count())
        return INVALID_ARGUMENT;
    *device = &all_devices[index];
    return OK;
}

/* "domain:bus:device.function" with the bus in hexadecimal; ours is the index + 1 (runtime.c). */
SIM_API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    unsigned domain, bus;
    if (sscanf(bus_id, "%x:%x:", &domain, &bus) != 2 || bus == 0 || bus > (unsigned)sim_device_physical_count())
        return NOT_FOUND;
    *device = &all_devices[bus - 1];
    return OK;
}

/* PyTorch reads the list of visible devices with these: "GPU-" and the index, distinct and of the right length. */
SIM_API int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    static const char model[] = "GPU-70696d75-6c61-7465-6400-00000000000%d";
    int index = index_of(device);
    if (index < 0 || size < sizeof model)
        return index < 0 ? INVALID_ARGUMENT : INSUFFICIENT_SIZE;
    snprintf(text, size, model, index);
    return OK;
}

SIM_API int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    size_t length = strlen(uuid);
    return length == 40 ? nvmlDeviceGetHandleByIndex_v2((unsigned)(uuid[39] - '0'), device) : NOT_FOUND;
}

SIM_API int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    if (index_of(device) < 0 || size == 0)
        return INVALID_ARGUMENT;
    snprintf(name, size, "%s", sim_device_spec()->name);
    return OK;
}

SIM_API int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *memory)
{
    int index = index_of(device);
    if (index < 0)
        return INVALID_ARGUMENT;
    uint64_t total = sim_device_spec()->total_memory, used = used_by_physical(index);
    *memory = (struct nvml_memory){.total = total, .free = total - used, .used = used};
    return OK;
}

/* The first version of the call, the one PyTorch uses: this process alone. */
SIM_API int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, struct nvml_process_v1 *processes)
{
    int index = index_of(device);
    if (index < 0)
        return INVALID_ARGUMENT;
    bool fits = *count >= 1;
    *count = 1;
    if (!fits)
        return INSUFFICIENT_SIZE;
    *processes = (struct nvml_process_v1){.pid = (unsigned)getpid(), .used = used_by_physical(index)};
    return OK;
}

SIM_API int nvmlDeviceGetP2PStatus(void *device, void *peer, int index, int *status)
{
    *status = 0; /* NVML_P2P_STATUS_OK */
    return OK;
}

SIM_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void)
{
    return NOT_SUPPORTED;
}

SIM_API int nvmlDeviceGetNvLinkRemoteDeviceType(void)
{
    return NOT_SUPPORTED;
}

SIM_API int nvmlDeviceGetGpuFabricInfoV(void)
{
    return NOT_SUPPORTED;
}
