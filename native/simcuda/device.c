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

static pml_sim_spec g_spec;
static _Atomic int g_count; /* 0: not configured */
static pthread_once_t g_visible_once = PTHREAD_ONCE_INIT;
static int g_visible[PML_MAX_DEVICES];
static int g_visible_count;
static _Atomic uint64_t g_used[PML_MAX_DEVICES];
static _Atomic uint64_t g_peak[PML_MAX_DEVICES];
static _Atomic bool g_active[PML_MAX_DEVICES];
static _Thread_local int t_device;

/* Returns 0; 1: a value out of range; 2: configured before, and differently. */
PML_API int pml_simcuda_configure(const pml_sim_spec *spec, int count)
{
    if (count < 1 || count > PML_MAX_DEVICES || spec->total_memory == 0)
        return 1;
    if (atomic_load(&g_count) != 0)
        return atomic_load(&g_count) == count && memcmp(&g_spec, spec, sizeof *spec) == 0 ? 0 : 2;
    g_spec = *spec;
    g_spec.name[sizeof g_spec.name - 1] = '\0';
    atomic_store(&g_count, count);
    return 0;
}

/* Bytes taken from a visible device, by cudaMalloc and by physical memory handles. */
PML_API uint64_t pml_simcuda_used(int device)
{
    return device >= 0 && device < pml_sim_device_count() ? pml_sim_device_used(device) : 0;
}

/* CUDA's rule: a list of ordinals; the first one that is not valid hides itself and all after it. */
static void find_visible(void)
{
    int count = atomic_load(&g_count);
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (text == NULL) {
        for (int i = 0; i < count; i++)
            g_visible[i] = i;
        g_visible_count = count;
        return;
    }
    while (g_visible_count < PML_MAX_DEVICES) {
        char *end;
        long ordinal = strtol(text, &end, 10);
        if (end == text || ordinal < 0 || ordinal >= count)
            return;
        g_visible[g_visible_count++] = (int)ordinal;
        end += strspn(end, " ");
        if (*end != ',')
            return;
        text = end + 1;
    }
}

int pml_sim_physical_count(void) { return atomic_load(&g_count); }

int pml_sim_device_count(void)
{
    if (atomic_load(&g_count) == 0)
        return 0;
    pthread_once(&g_visible_once, find_visible);
    return g_visible_count;
}

int pml_sim_device_physical(int device) { return g_visible[device]; }

const pml_sim_spec *pml_sim_device_spec(void) { return &g_spec; }

int pml_sim_device_current(void) { return t_device; }

int pml_sim_device_select(int device)
{
    if (device < 0 || device >= pml_sim_device_count())
        return pml_sim_device_count() == 0 ? PML_CUDA_NO_DEVICE : PML_CUDA_INVALID_DEVICE;
    t_device = device;
    atomic_store(&g_active[device], true);
    return PML_CUDA_OK;
}

/* Whether the process has a context on the device: since it was selected or memory was taken from it. */
bool pml_sim_device_active(int device) { return atomic_load(&g_active[device]); }

static void raise_peak(int device, uint64_t now)
{
    uint64_t peak = atomic_load(&g_peak[device]);
    while (now > peak && !atomic_compare_exchange_weak(&g_peak[device], &peak, now))
        ;
}

int pml_sim_device_reserve(int device, size_t bytes)
{
    uint64_t used = atomic_load(&g_used[device]);
    do {
        if (bytes > g_spec.total_memory - used)
            return PML_CUDA_OUT_OF_MEMORY;
    } while (!atomic_compare_exchange_weak(&g_used[device], &used, used + bytes));
    raise_peak(device, used + bytes);
    atomic_store(&g_active[device], true);
    return PML_CUDA_OK;
}

void pml_sim_device_release(int device, size_t bytes) { atomic_fetch_sub(&g_used[device], bytes); }

uint64_t pml_sim_device_used(int device) { return atomic_load(&g_used[device]); }

uint64_t pml_sim_device_peak(int device) { return atomic_load(&g_peak[device]); }

void pml_sim_device_reset_peak(int device) { atomic_store(&g_peak[device], atomic_load(&g_used[device])); }

void pml_sim_device_uuid(int device, unsigned char uuid[16])
{
    memcpy(uuid, "pml-simulated-0", 16);
    uuid[14] = (unsigned char)('0' + g_visible[device]);
}

/* Attributes this model has a value for. The rest is 0: "not supported" for every flag among them. */
static int attribute_value(int attribute, int device)
{
    switch (attribute) {
    case PML_ATTR_MAX_THREADS_PER_BLOCK:
    case PML_ATTR_MAX_BLOCK_X:
    case PML_ATTR_MAX_BLOCK_Y: return 1024;
    case PML_ATTR_MAX_BLOCK_Z: return 64;
    case PML_ATTR_MAX_GRID_X: return 0x7fffffff;
    case PML_ATTR_MAX_GRID_Y:
    case PML_ATTR_MAX_GRID_Z: return 65535;
    case PML_ATTR_SHARED_PER_BLOCK: return 48 << 10;
    case PML_ATTR_TOTAL_CONST: return 64 << 10;
    case PML_ATTR_WARP_SIZE: return 32;
    case PML_ATTR_MAX_PITCH: return 0x7fffffff;
    case PML_ATTR_REGISTERS_PER_BLOCK:
    case PML_ATTR_REGISTERS_PER_SM: return 65536;
    case PML_ATTR_CLOCK_RATE:
    case PML_ATTR_MEMORY_CLOCK: return 1500000;
    case PML_ATTR_TEXTURE_ALIGNMENT:
    case PML_ATTR_SURFACE_ALIGNMENT: return 512;
    case PML_ATTR_MAX_TEXTURE_1D: return 131072;
    case PML_ATTR_SM_COUNT: return g_spec.sm_count;
    case PML_ATTR_GPU_OVERLAP:
    case PML_ATTR_CAN_MAP_HOST:
    case PML_ATTR_CONCURRENT_KERNELS:
    case PML_ATTR_UNIFIED_ADDRESSING:
    case PML_ATTR_STREAM_PRIORITIES:
    case PML_ATTR_GLOBAL_L1:
    case PML_ATTR_LOCAL_L1:
    case PML_ATTR_COMPUTE_PREEMPTION:
    case PML_ATTR_COOPERATIVE_LAUNCH:
    case PML_ATTR_HOST_REGISTER:
    case PML_ATTR_MEMORY_POOLS:
    case PML_ATTR_VIRTUAL_MEMORY: return 1;
    case PML_ATTR_PCI_BUS: return g_visible[device] + 1;
    case PML_ATTR_BUS_WIDTH: return g_spec.bus_width;
    case PML_ATTR_L2_SIZE: return g_spec.l2_size;
    case PML_ATTR_THREADS_PER_SM: return g_spec.threads_per_sm;
    case PML_ATTR_ASYNC_ENGINES: return 3;
    case PML_ATTR_CAPABILITY_MAJOR: return g_spec.major;
    case PML_ATTR_CAPABILITY_MINOR: return g_spec.minor;
    case PML_ATTR_SHARED_PER_SM: return g_spec.shared_per_sm;
    case PML_ATTR_SHARED_PER_BLOCK_OPTIN: return g_spec.shared_per_block_optin;
    case PML_ATTR_BLOCKS_PER_SM: return g_spec.threads_per_sm / 64;
    case PML_ATTR_SHARED_RESERVED: return g_spec.major >= 8 ? 1024 : 0;
    case PML_ATTR_CLUSTER_LAUNCH: return g_spec.major >= 9;
    default: return 0;
    }
}

int pml_sim_device_attribute(int attribute, int device, int *value)
{
    if (device < 0 || device >= pml_sim_device_count())
        return PML_CUDA_INVALID_DEVICE;
    if (value == NULL)
        return PML_CUDA_INVALID_VALUE;
    *value = attribute_value(attribute, device);
    return PML_CUDA_OK;
}

/* ---- limits: kept for whoever reads them back, without effect ---- */

/* What the driver says of a device whose limits nobody set. */
static const size_t k_default_limits[PML_LIMITS] = {
    [PML_LIMIT_STACK_SIZE] = 1024,
    [PML_LIMIT_PRINTF_FIFO_SIZE] = (size_t)1 << 20,
    [PML_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20,
    [PML_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [PML_LIMIT_DEV_RUNTIME_PENDING_LAUNCHES] = 2048,
    [PML_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
};

static _Atomic size_t g_limits[PML_MAX_DEVICES][PML_LIMITS]; /* 0: the default */

int pml_sim_device_limit(int limit, size_t *value)
{
    if (limit < 0 || limit >= PML_LIMITS)
        return PML_CUDA_NOT_SUPPORTED;
    size_t set = atomic_load(&g_limits[t_device][limit]);
    *value = set ? set : k_default_limits[limit];
    return PML_CUDA_OK;
}

int pml_sim_device_set_limit(int limit, size_t value)
{
    if (limit < 0 || limit >= PML_LIMITS)
        return PML_CUDA_NOT_SUPPORTED;
    atomic_store(&g_limits[t_device][limit], value);
    return PML_CUDA_OK;
}
