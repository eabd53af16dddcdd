/* Driver API: virtual memory management, which PyTorch's expandable_segments are made of.
 *
 * Purpose: address space (cuMemAddressReserve), physical memory (cuMemCreate) and what is mapped where. Physical memory
 *   is an amount on a device: its bytes live at the address it is mapped to and are gone once it is unmapped. One handle
 *   mapped at two addresses therefore does not show the same bytes.
 * Ownership: a handle is counted: one reference of its creator's, one of each mapping; the last gives the memory back.
 * Threads: any. Locks: one mutex over mappings and reference counts; ranges.c's lock is taken after it is dropped.
 */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GRANULARITY ((size_t)2 << 20)

typedef struct {
    size_t size;
    int device;
    unsigned references;
} pml_physical;

typedef struct {
    uint64_t address;
    size_t size;
    pml_physical *physical;
} pml_mapping;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pml_mapping *g_mappings; /* sorted by address */
static size_t g_count, g_capacity;

static void before_fork(void) { pthread_mutex_lock(&g_lock); }
static void after_fork_parent(void) { pthread_mutex_unlock(&g_lock); }
static void after_fork_child(void) { pthread_mutex_init(&g_lock, NULL); }
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* The index of the first mapping that ends above the address. */
static size_t first_above(uint64_t address)
{
    size_t low = 0, high = g_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g_mappings[middle].address + g_mappings[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(const pml_mapping *mapping)
{
    size_t at = first_above(mapping->address);
    if (at < g_count && g_mappings[at].address < mapping->address + mapping->size)
        return PML_CUDA_INVALID_VALUE;
    if (g_count == g_capacity) {
        size_t capacity = g_capacity ? 2 * g_capacity : 64;
        pml_mapping *grown = realloc(g_mappings, capacity * sizeof *grown);
        if (grown == NULL)
            return PML_CUDA_OUT_OF_MEMORY;
        g_mappings = grown;
        g_capacity = capacity;
    }
    memmove(&g_mappings[at + 1], &g_mappings[at], (g_count - at) * sizeof *g_mappings);
    g_mappings[at] = *mapping;
    g_count++;
    return PML_CUDA_OK;
}

/* The caller holds the lock. */
static void drop_reference(pml_physical *physical)
{
    if (--physical->references > 0)
        return;
    pml_sim_device_release(physical->device, physical->size);
    free(physical);
}

/* ---- address space ---- */

PML_API int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t wish,
                                unsigned long long flags)
{
    void *base;
    if (address == NULL || size == 0 || size % GRANULARITY != 0)
        return PML_CUDA_INVALID_VALUE;
    int error = pml_range_create(PML_RANGE_RESERVED, pml_sim_device_current(), size,
                                 alignment > GRANULARITY ? alignment : GRANULARITY, &base);
    if (error == PML_CUDA_OK)
        *address = (uintptr_t)base;
    return error;
}

PML_API int cuMemAddressFree(uint64_t address, size_t size)
{
    return pml_range_destroy((const void *)(uintptr_t)address, PML_RANGE_RESERVED, NULL);
}

/* ---- physical memory ---- */

PML_API int cuMemGetAllocationGranularity(size_t *granularity, const pml_mem_allocation_prop *prop, int option)
{
    *granularity = GRANULARITY;
    return PML_CUDA_OK;
}

PML_API int cuMemCreate(uint64_t *handle, size_t size, const pml_mem_allocation_prop *prop, unsigned long long flags)
{
    if (handle == NULL || prop == NULL || size == 0 || size % GRANULARITY != 0)
        return PML_CUDA_INVALID_VALUE;
    if (prop->location.type != PML_LOCATION_DEVICE)
        return PML_CUDA_NOT_SUPPORTED;
    if (prop->location.id < 0 || prop->location.id >= pml_sim_device_count())
        return PML_CUDA_INVALID_DEVICE;
    pml_physical *physical = malloc(sizeof *physical);
    if (physical == NULL)
        return PML_CUDA_OUT_OF_MEMORY;
    int error = pml_sim_device_reserve(prop->location.id, size);
    if (error != PML_CUDA_OK) {
        free(physical);
        return error;
    }
    *physical = (pml_physical){.size = size, .device = prop->location.id, .references = 1};
    *handle = (uintptr_t)physical;
    return PML_CUDA_OK;
}

PML_API int cuMemRelease(uint64_t handle)
{
    if (handle == 0)
        return PML_CUDA_INVALID_VALUE;
    pthread_mutex_lock(&g_lock);
    drop_reference((pml_physical *)(uintptr_t)handle);
    pthread_mutex_unlock(&g_lock);
    return PML_CUDA_OK;
}

PML_API int cuMemGetAllocationPropertiesFromHandle(pml_mem_allocation_prop *prop, uint64_t handle)
{
    const pml_physical *physical = (const pml_physical *)(uintptr_t)handle;
    if (prop == NULL || physical == NULL)
        return PML_CUDA_INVALID_VALUE;
    *prop = (pml_mem_allocation_prop){.type = 1 /* pinned */, .location = {PML_LOCATION_DEVICE, physical->device}};
    return PML_CUDA_OK;
}

PML_API int cuMemExportToShareableHandle(void) { return PML_CUDA_NOT_SUPPORTED; }
PML_API int cuMemImportFromShareableHandle(void) { return PML_CUDA_NOT_SUPPORTED; }

/* ---- mappings ---- */

PML_API int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags)
{
    pml_range range;
    const void *pointer = (const void *)(uintptr_t)address;
    pml_mapping mapping = {address, size, (pml_physical *)(uintptr_t)handle};
    if (handle == 0 || size == 0 || !pml_range_lookup(pointer, &range) || range.kind != PML_RANGE_RESERVED ||
        size > range.size - (address - range.base))
        return PML_CUDA_INVALID_VALUE;
    pthread_mutex_lock(&g_lock);
    int error = insert(&mapping);
    if (error == PML_CUDA_OK)
        mapping.physical->references++;
    int device = mapping.physical->device;
    pthread_mutex_unlock(&g_lock);
    if (error == PML_CUDA_OK)
        pml_range_assign(pointer, device);
    return error;
}

PML_API int cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count) { return PML_CUDA_OK; }

/* Takes away every mapping that starts in the span. */
PML_API int cuMemUnmap(uint64_t address, size_t size)
{
    pml_range_forget((void *)(uintptr_t)address, size);
    pthread_mutex_lock(&g_lock);
    size_t from = first_above(address), to = from;
    while (to < g_count && g_mappings[to].address < address + size)
        drop_reference(g_mappings[to++].physical);
    memmove(&g_mappings[from], &g_mappings[to], (g_count - to) * sizeof *g_mappings);
    g_count -= to - from;
    pthread_mutex_unlock(&g_lock);
    return to > from ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE;
}

PML_API int cuMemRetainAllocationHandle(uint64_t *handle, void *address)
{
    pthread_mutex_lock(&g_lock);
    size_t at = first_above((uintptr_t)address);
    bool found = at < g_count && g_mappings[at].address <= (uintptr_t)address;
    if (found) {
        g_mappings[at].physical->references++;
        *handle = (uintptr_t)g_mappings[at].physical;
    }
    pthread_mutex_unlock(&g_lock);
    return found ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE;
}

/* The mapping around an address; what cuMemGetAddressRange says of reserved address space. */
int pml_sim_mapping_find(uint64_t address, uint64_t *base, size_t *size)
{
    pthread_mutex_lock(&g_lock);
    size_t at = first_above(address);
    bool found = at < g_count && g_mappings[at].address <= address;
    if (found) {
        *base = g_mappings[at].address;
        *size = g_mappings[at].size;
    }
    pthread_mutex_unlock(&g_lock);
    return found ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE;
}
