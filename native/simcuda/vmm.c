/* Driver API: virtual memory management, which PyTorch's expandable_segments are made of.
 *
 * Purpose: address space (cuMemAddressReserve), physical memory (cuMemCreate) and what is mapped where. Physical memory
 *   is an amount on a device: its bytes live at the address it is mapped to and are gone once it is unmapped. One
 * handle mapped at two addresses therefore does not show the same bytes. Ownership: a handle is counted: one reference
 * of its creator's, one of each mapping; the last gives the memory back. Threads: any. Locks: one mutex over mappings
 * and reference counts; ranges.c's lock is taken after it is dropped.
 */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GRANULARITY ((size_t)2 << 20)

struct sim_physical {
    size_t size;
    int device;
    unsigned references;
};

struct sim_mapping {
    uint64_t address;
    size_t size;
    struct sim_physical *physical;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sim_mapping *all_mappings; /* sorted by address */
static size_t known_count, known_capacity;

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void after_fork_child(void)
{
    pthread_mutex_init(&mutex, NULL);
}
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* The index of the first mapping that ends above the address. */
static size_t first_above(uint64_t address)
{
    size_t low = 0, high = known_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all_mappings[middle].address + all_mappings[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(const struct sim_mapping *mapping)
{
    size_t at = first_above(mapping->address);
    if (at < known_count && all_mappings[at].address < mapping->address + mapping->size)
        return CUDA_INVALID_VALUE;
    if (known_count == known_capacity) {
        size_t capacity = known_capacity ? 2 * known_capacity : 64;
        struct sim_mapping *grown = realloc(all_mappings, capacity * sizeof *grown);
        if (grown == NULL)
            return CUDA_OUT_OF_MEMORY;
        all_mappings = grown;
        known_capacity = capacity;
    }
    memmove(&all_mappings[at + 1], &all_mappings[at], (known_count - at) * sizeof *all_mappings);
    all_mappings[at] = *mapping;
    known_count++;
    return CUDA_OK;
}

/* The caller holds the lock. */
static void drop_reference(struct sim_physical *physical)
{
    if (--physical->references > 0)
        return;
    sim_device_release(physical->device, physical->size);
    free(physical);
}

/* ---- address space ---- */

SIM_API int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t wish,
                                unsigned long long flags)
{
    void *base;
    if (address == NULL || size == 0 || size % GRANULARITY != 0)
        return CUDA_INVALID_VALUE;
    int error = sim_ranges_create(SIM_RANGE_RESERVED, sim_device_current(), size,
                                  alignment > GRANULARITY ? alignment : GRANULARITY, &base);
    if (error == CUDA_OK)
        *address = (uintptr_t)base;
    return error;
}

SIM_API int cuMemAddressFree(uint64_t address, size_t size)
{
    return sim_ranges_destroy((const void *)(uintptr_t)address, SIM_RANGE_RESERVED, NULL);
}

/* ---- physical memory ---- */

SIM_API int cuMemGetAllocationGranularity(size_t *granularity, const struct cuda_mem_allocation_prop *prop, int option)
{
    *granularity = GRANULARITY;
    return CUDA_OK;
}

SIM_API int cuMemCreate(uint64_t *handle, size_t size, const struct cuda_mem_allocation_prop *prop,
                        unsigned long long flags)
{
    if (handle == NULL || prop == NULL || size == 0 || size % GRANULARITY != 0)
        return CUDA_INVALID_VALUE;
    if (prop->location.type != CUDA_LOCATION_DEVICE)
        return CUDA_NOT_SUPPORTED;
    if (prop->location.id < 0 || prop->location.id >= sim_device_count())
        return CUDA_INVALID_DEVICE;
    struct sim_physical *physical = malloc(sizeof *physical);
    if (physical == NULL)
        return CUDA_OUT_OF_MEMORY;
    int error = sim_device_reserve(prop->location.id, size);
    if (error != CUDA_OK) {
        free(physical);
        return error;
    }
    *physical = (struct sim_physical){.size = size, .device = prop->location.id, .references = 1};
    *handle = (uintptr_t)physical;
    return CUDA_OK;
}

SIM_API int cuMemRelease(uint64_t handle)
{
    if (handle == 0)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    drop_reference((struct sim_physical *)(uintptr_t)handle);
    pthread_mutex_unlock(&mutex);
    return CUDA_OK;
}

SIM_API int cuMemGetAllocationPropertiesFromHandle(struct cuda_mem_allocation_prop *prop, uint64_t handle)
{
    const struct sim_physical *physical = (const struct sim_physical *)(uintptr_t)handle;
    if (prop == NULL || physical == NULL)
        return CUDA_INVALID_VALUE;
    *prop =
        (struct cuda_mem_allocation_prop){.type = 1 /* pinned */, .location = {CUDA_LOCATION_DEVICE, physical->device}};
    return CUDA_OK;
}

SIM_API int cuMemExportToShareableHandle(void)
{
    return CUDA_NOT_SUPPORTED;
}

SIM_API int cuMemImportFromShareableHandle(void)
{
    return CUDA_NOT_SUPPORTED;
}

/* ---- mappings ---- */

SIM_API int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags)
{
    struct sim_range range;
    const void *pointer = (const void *)(uintptr_t)address;
    struct sim_mapping mapping = {address, size, (struct sim_physical *)(uintptr_t)handle};
    if (handle == 0 || size == 0 || !sim_ranges_lookup(pointer, &range) || range.kind != SIM_RANGE_RESERVED ||
        size > range.size - (address - range.base))
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    int error = insert(&mapping);
    if (error == CUDA_OK)
        mapping.physical->references++;
    int device = mapping.physical->device;
    pthread_mutex_unlock(&mutex);
    if (error == CUDA_OK)
        sim_ranges_assign(pointer, device);
    return error;
}

SIM_API int cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count)
{
    return CUDA_OK;
}

/* Takes away every mapping that starts in the span. */
SIM_API int cuMemUnmap(uint64_t address, size_t size)
{
    sim_ranges_forget((void *)(uintptr_t)address, size);
    pthread_mutex_lock(&mutex);
    size_t from = first_above(address), to = from;
    while (to < known_count && all_mappings[to].address < address + size)
        drop_reference(all_mappings[to++].physical);
    memmove(&all_mappings[from], &all_mappings[to], (known_count - to) * sizeof *all_mappings);
    known_count -= to - from;
    pthread_mutex_unlock(&mutex);
    return to > from ? CUDA_OK : CUDA_INVALID_VALUE;
}

SIM_API int cuMemRetainAllocationHandle(uint64_t *handle, void *address)
{
    pthread_mutex_lock(&mutex);
    size_t at = first_above((uintptr_t)address);
    bool found = at < known_count && all_mappings[at].address <= (uintptr_t)address;
    if (found) {
        all_mappings[at].physical->references++;
        *handle = (uintptr_t)all_mappings[at].physical;
    }
    pthread_mutex_unlock(&mutex);
    return found ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* The mapping around an address; what cuMemGetAddressRange says of reserved address space. */
int sim_vmm_find_mapping(uint64_t address, uint64_t *base, size_t *size)
{
    pthread_mutex_lock(&mutex);
    size_t at = first_above(address);
    bool found = at < known_count && all_mappings[at].address <= address;
    if (found) {
        *base = all_mappings[at].address;
        *size = all_mappings[at].size;
    }
    pthread_mutex_unlock(&mutex);
    return found ? CUDA_OK : CUDA_INVALID_VALUE;
}
