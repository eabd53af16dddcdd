/* The simulated devices: what they are and how much of their memory is taken.
 *
 * Purpose: holds the one description all devices of a process share, and per device the bytes in use.
 * Ownership: the description is written once by pml_simcuda_configure and read-only afterwards.
 * Threads: any. Locks: none; the byte counters are atomics, the visible devices are found once (pthread_once).
 */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct sim_spec common_spec;
static _Atomic int known_count; /* 0: not configured */
static pthread_once_t visible_once = PTHREAD_ONCE_INIT;
static int visible_devices[SIM_MAX_DEVICES];
static int visible_count;
static _Atomic uint64_t used_bytes[SIM_MAX_DEVICES];
static _Atomic uint64_t peak_bytes[SIM_MAX_DEVICES];
static _Atomic bool active[SIM_MAX_DEVICES];
static _Thread_local int current_device;

/* Returns 0; 1: a value out of range; 2: configured before, and differently. */
SIM_API int pml_simcuda_configure(const struct sim_spec *spec, int count)
{
    if (count < 1 || count > SIM_MAX_DEVICES || spec->total_memory == 0)
        return 1;
    if (atomic_load(&known_count) != 0)
        return atomic_load(&known_count) == count && memcmp(&common_spec, spec, sizeof *spec) == 0 ? 0 : 2;
    common_spec = *spec;
    common_spec.name[sizeof common_spec.name - 1] = '\0';
    atomic_store(&known_count, count);
    return 0;
}

/* Bytes taken from a visible device, by cudaMalloc and by physical memory handles. */
SIM_API uint64_t pml_simcuda_used(int device)
{
    return device >= 0 && device < sim_device_count() ? sim_device_used(device) : 0;
}

/* CUDA's rule: a list of ordinals; the first one that is not valid hides itself and all after it. */
static void find_visible(void)
{
    int count = atomic_load(&known_count);
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (text == NULL) {
        for (int i = 0; i < count; i++)
            visible_devices[i] = i;
        visible_count = count;
        return;
    }
    while (visible_count < SIM_MAX_DEVICES) {
        char *end;
        long ordinal = strtol(text, &end, 10);
        if (end == text || ordinal < 0 || ordinal >= count)
            return;
        visible_devices[visible_count++] = (int)ordinal;
        end += strspn(end, " ");
        if (*end != ',')
            return;
        text = end + 1;
    }
}

int sim_device_physical_count(void)
{
    return atomic_load(&known_count);
}

int sim_device_count(void)
{
    if (atomic_load(&known_count) == 0)
        return 0;
    pthread_once(&visible_once, find_visible);
    return visible_count;
}

int sim_device_physical(int device)
{
    return visible_devices[device];
}

const struct sim_spec *sim_device_spec(void)
{
    return &common_spec;
}

int sim_device_current(void)
{
    return current_device;
}

int sim_device_select(int device)
{
    if (device < 0 || device >= sim_device_count())
        return sim_device_count() == 0 ? CUDA_NO_DEVICE : CUDA_INVALID_DEVICE;
    current_device = device;
    atomic_store(&active[device], true);
    return CUDA_OK;
}

/* Whether the process has a context on the device: since it was selected or memory was taken from it. */
bool sim_device_active(int device)
{
    return atomic_load(&active[device]);
}

static void raise_peak(int device, uint64_t now)
{
    uint64_t peak = atomic_load(&peak_bytes[device]);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes[device], &peak, now))
        ;
}

int sim_device_reserve(int device, size_t bytes)
{
    uint64_t used = atomic_load(&used_bytes[device]);
    do {
        if (bytes > common_spec.total_memory - used)
            return CUDA_OUT_OF_MEMORY;
    } while (!atomic_compare_exchange_weak(&used_bytes[device], &used, used + bytes));
    raise_peak(device, used + bytes);
    atomic_store(&active[device], true);
    return CUDA_OK;
}

void sim_device_release(int device, size_t bytes)
{
    atomic_fetch_sub(&used_bytes[device], bytes);
}

uint64_t sim_device_used(int device)
{
    return atomic_load(&used_bytes[device]);
}

uint64_t sim_device_peak(int device)
{
    return atomic_load(&peak_bytes[device]);
}

void sim_device_reset_peak(int device)
{
    atomic_store(&peak_bytes[device], atomic_load(&used_bytes[device]));
}

void sim_device_uuid(int device, unsigned char uuid[16])
{
    memcpy(uuid, "pml-simulated-0", 16);
    uuid[14] = (unsigned char)('0' + visible_devices[device]);
}

/* Attributes this model has a value for. The rest is 0: "not supported" for every flag among them. */
static int attribute_value(int attribute, int device)
{
    switch (attribute) {
    case CUDA_ATTR_MAX_THREADS_PER_BLOCK:
    case CUDA_ATTR_MAX_BLOCK_X:
    case CUDA_ATTR_MAX_BLOCK_Y: return 1024;
    case CUDA_ATTR_MAX_BLOCK_Z: return 64;
    case CUDA_ATTR_MAX_GRID_X: return 0x7fffffff;
    case CUDA_ATTR_MAX_GRID_Y:
    case CUDA_ATTR_MAX_GRID_Z: return 65535;
    case CUDA_ATTR_SHARED_PER_BLOCK: return 48 << 10;
    case CUDA_ATTR_TOTAL_CONST: return 64 << 10;
    case CUDA_ATTR_WARP_SIZE: return 32;
    case CUDA_ATTR_MAX_PITCH: return 0x7fffffff;
    case CUDA_ATTR_REGISTERS_PER_BLOCK:
    case CUDA_ATTR_REGISTERS_PER_SM: return 65536;
    case CUDA_ATTR_CLOCK_RATE:
    case CUDA_ATTR_MEMORY_CLOCK: return 1500000;
    case CUDA_ATTR_TEXTURE_ALIGNMENT:
    case CUDA_ATTR_SURFACE_ALIGNMENT: return 512;
    case CUDA_ATTR_MAX_TEXTURE_1D: return 131072;
    case CUDA_ATTR_SM_COUNT: return common_spec.sm_count;
    case CUDA_ATTR_GPU_OVERLAP:
    case CUDA_ATTR_CAN_MAP_HOST:
    case CUDA_ATTR_CONCURRENT_KERNELS:
    case CUDA_ATTR_UNIFIED_ADDRESSING:
    case CUDA_ATTR_STREAM_PRIORITIES:
    case CUDA_ATTR_GLOBAL_L1:
    case CUDA_ATTR_LOCAL_L1:
    case CUDA_ATTR_COMPUTE_PREEMPTION:
    case CUDA_ATTR_COOPERATIVE_LAUNCH:
    case CUDA_ATTR_HOST_REGISTER:
    case CUDA_ATTR_MEMORY_POOLS:
    case CUDA_ATTR_VIRTUAL_MEMORY: return 1;
    case CUDA_ATTR_PCI_BUS: return visible_devices[device] + 1;
    case CUDA_ATTR_BUS_WIDTH: return common_spec.bus_width;
    case CUDA_ATTR_L2_SIZE: return common_spec.l2_size;
    case CUDA_ATTR_THREADS_PER_SM: return common_spec.threads_per_sm;
    case CUDA_ATTR_ASYNC_ENGINES: return 3;
    case CUDA_ATTR_CAPABILITY_MAJOR: return common_spec.major;
    case CUDA_ATTR_CAPABILITY_MINOR: return common_spec.minor;
    case CUDA_ATTR_SHARED_PER_SM: return common_spec.shared_per_sm;
    case CUDA_ATTR_SHARED_PER_BLOCK_OPTIN: return common_spec.shared_per_block_optin;
    case CUDA_ATTR_BLOCKS_PER_SM: return common_spec.threads_per_sm / 64;
    case CUDA_ATTR_SHARED_RESERVED: return common_spec.major >= 8 ? 1024 : 0;
    case CUDA_ATTR_CLUSTER_LAUNCH: return common_spec.major >= 9;
    default: return 0;
    }
}

int sim_device_attribute(int attribute, int device, int *value)
{
    if (device < 0 || device >= sim_device_count())
        return CUDA_INVALID_DEVICE;
    if (value == NULL)
        return CUDA_INVALID_VALUE;
    *value = attribute_value(attribute, device);
    return CUDA_OK;
}

/* ---- limits: kept for whoever reads them back, without effect ---- */

/* What the driver says of a device whose limits nobody set. */
static const size_t default_limits[CUDA_LIMITS] = {
    [CUDA_LIMIT_STACK_SIZE] = 1024,
    [CUDA_LIMIT_PRINTF_FIFO_SIZE] = (size_t)1 << 20,
    [CUDA_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20,
    [CUDA_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CUDA_LIMIT_DEV_RUNTIME_PENDING_LAUNCHES] = 2048,
    [CUDA_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
};

static _Atomic size_t limits_set[SIM_MAX_DEVICES][CUDA_LIMITS]; /* 0: the default */

int sim_device_limit(int limit, size_t *value)
{
    if (limit < 0 || limit >= CUDA_LIMITS)
        return CUDA_NOT_SUPPORTED;
    size_t set = atomic_load(&limits_set[current_device][limit]);
    *value = set ? set : default_limits[limit];
    return CUDA_OK;
}

int sim_device_set_limit(int limit, size_t value)
{
    if (limit < 0 || limit >= CUDA_LIMITS)
        return CUDA_NOT_SUPPORTED;
    atomic_store(&limits_set[current_device][limit], value);
    return CUDA_OK;
}
