/* Which addresses are simulated device memory or pinned host memory, and what they hold.
 *
 * Purpose: the table behind cudaMalloc, cudaHostAlloc, cudaHostRegister and cuMemAddressReserve, and the copies between
 * them. Device memory is reserved with mmap(MAP_NORESERVE) and takes real memory only where something was copied to it.
 * No kernel runs, so all writes pass here: a bit for each chunk says whether it was ever written with something else
 * than zeros. Zeros are not stored at all, and a copy out of an unwritten chunk does not touch it. Ownership: a range
 * owns its pages (not a registered one) and its bits. Threads: any. Locks: one read-write lock. Copies hold it for
 * reading, so that memory cannot go while it is copied. Two copies may work on one chunk at once: a bit is set before
 * bytes are stored, and it is cleared only by a fill that covers the whole chunk, which no other copy may then be
 * writing to (that would be a race in the program too).
 */
#define _GNU_SOURCE
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_rwlock_t mutex = PTHREAD_RWLOCK_INITIALIZER;
static struct sim_range *all_ranges; /* sorted by base, no two overlap */
static size_t known_count, known_capacity;

/* ---- fork: the child gets the table in a consistent state, and a new lock: the old one may have waiting threads,
 * which the child has not ---- */

static void before_fork(void)
{
    pthread_rwlock_wrlock(&mutex);
}

static void after_fork_parent(void)
{
    pthread_rwlock_unlock(&mutex);
}

static void after_fork_child(void)
{
    pthread_rwlock_init(&mutex, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- the table; the caller holds the lock ---- */

/* The index of the first range whose base is above the address. */
static size_t upper_bound(uintptr_t address)
{
    size_t low = 0, high = known_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all_ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sim_range *find(uintptr_t address)
{
    size_t above = upper_bound(address);
    if (above == 0)
        return NULL;
    struct sim_range *range = &all_ranges[above - 1];
    return address - range->base < range->size ? range : NULL;
}

static int insert(const struct sim_range *range)
{
    if (known_count == known_capacity) {
        size_t capacity = known_capacity ? 2 * known_capacity : 64;
        struct sim_range *grown = realloc(all_ranges, capacity * sizeof *grown);
        if (grown == NULL)
            return CUDA_OUT_OF_MEMORY;
        all_ranges = grown;
        known_capacity = capacity;
    }
    size_t at = upper_bound(range->base);
    memmove(&all_ranges[at + 1], &all_ranges[at], (known_count - at) * sizeof *all_ranges);
    all_ranges[at] = *range;
    known_count++;
    return CUDA_OK;
}

static void erase(struct sim_range *range)
{
    size_t at = (size_t)(range - all_ranges);
    memmove(range, range + 1, (known_count - at - 1) * sizeof *range);
    known_count--;
}

/* ---- making and dropping ranges ---- */

static bool is_device(const struct sim_range *range)
{
    return range->kind == SIM_RANGE_DEVICE || range->kind == SIM_RANGE_RESERVED;
}

static size_t chunks_of(size_t size)
{
    return (size + SIM_CHUNK - 1) / SIM_CHUNK;
}

/* Address space of a multiple of the chunk, aligned as asked; NULL on failure. */
static void *map_pages(size_t size, size_t alignment)
{
    size_t room = size + alignment;
    char *start = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t skip = (alignment - (uintptr_t)start % alignment) % alignment;
    if (skip)
        munmap(start, skip);
    if (room - skip - size)
        munmap(start + skip + size, room - skip - size);
    madvise(start + skip, size, MADV_NOHUGEPAGE); /* a small copy must not take 2 MiB */
    return start + skip;
}

static void unmap_range(const struct sim_range *range)
{
    if (range->kind != SIM_RANGE_REGISTERED)
        munmap((void *)range->base, chunks_of(range->size) * SIM_CHUNK);
    free((void *)range->touched);
}

/* Reserves address space of `size` bytes; the accounting on the device is the caller's. */
int sim_ranges_create(enum sim_range_kind kind, int device, size_t size, size_t alignment, void **base)
{
    if (alignment < SIM_CHUNK)
        alignment = SIM_CHUNK;
    struct sim_range range = {.size = size, .kind = kind, .device = device};
    void *pages = map_pages(chunks_of(size) * SIM_CHUNK, alignment);
    if (pages == NULL) /* the host refuses: that is not an out-of-memory of the device */
        return CUDA_OPERATING_SYSTEM;
    range.base = (uintptr_t)pages;
    int error = CUDA_OK;
    if (is_device(&range)) {
        range.touched = calloc((chunks_of(size) + 63) / 64, sizeof *range.touched);
        error = range.touched ? CUDA_OK : CUDA_OPERATING_SYSTEM;
    }
    if (error == CUDA_OK) {
        pthread_rwlock_wrlock(&mutex);
        error = insert(&range);
        pthread_rwlock_unlock(&mutex);
    }
    if (error != CUDA_OK)
        unmap_range(&range);
    else
        *base = pages;
    return error;
}

/* Notes host memory of the program's own as pinned. */
int sim_ranges_register(void *base, size_t size, int device)
{
    struct sim_range range = {.base = (uintptr_t)base, .size = size, .kind = SIM_RANGE_REGISTERED, .device = device};
    pthread_rwlock_wrlock(&mutex);
    size_t above = upper_bound(range.base);
    bool taken = find(range.base) != NULL || (above < known_count && all_ranges[above].base - range.base < size);
    int error = taken ? CUDA_HOST_ALREADY_REGISTERED : insert(&range);
    pthread_rwlock_unlock(&mutex);
    return error;
}

/* Drops the range of that kind that starts at `base`; `gone` (may be NULL) tells what it was. */
int sim_ranges_destroy(const void *base, enum sim_range_kind kind, struct sim_range *gone)
{
    struct sim_range range;
    pthread_rwlock_wrlock(&mutex);
    struct sim_range *found = find((uintptr_t)base);
    bool known = found != NULL && found->base == (uintptr_t)base && found->kind == kind;
    if (known) {
        range = *found;
        erase(found);
    }
    pthread_rwlock_unlock(&mutex);
    if (!known)
        return CUDA_INVALID_VALUE;
    unmap_range(&range);
    if (gone != NULL)
        *gone = range;
    return CUDA_OK;
}

bool sim_ranges_lookup(const void *address, struct sim_range *found)
{
    pthread_rwlock_rdlock(&mutex);
    struct sim_range *range = find((uintptr_t)address);
    if (range != NULL)
        *found = *range;
    pthread_rwlock_unlock(&mutex);
    return range != NULL;
}

void sim_ranges_assign(const void *address, int device)
{
    pthread_rwlock_wrlock(&mutex);
    struct sim_range *range = find((uintptr_t)address);
    if (range != NULL)
        range->device = device;
    pthread_rwlock_unlock(&mutex);
}

/* ---- contents; the caller holds the lock for reading ---- */

static bool is_touched(const struct sim_range *range, uintptr_t address, size_t bytes)
{
    size_t last = (address + bytes - 1 - range->base) / SIM_CHUNK;
    for (size_t chunk = (address - range->base) / SIM_CHUNK; chunk <= last; chunk++)
        if (atomic_load(&range->touched[chunk / 64]) >> (chunk % 64) & 1)
            return true;
    return false;
}

static void touch(struct sim_range *range, uintptr_t address)
{
    size_t chunk = (address - range->base) / SIM_CHUNK;
    atomic_fetch_or(&range->touched[chunk / 64], (uint64_t)1 << (chunk % 64));
}

/* Makes one chunk's part zero: nothing to do, a page drop, or a memset, whichever is the least. */
static void clear_piece(struct sim_range *range, uintptr_t address, size_t bytes)
{
    if (!is_touched(range, address, bytes))
        return;
    if (bytes < SIM_CHUNK || madvise((void *)address, SIM_CHUNK, MADV_DONTNEED) != 0) {
        memset((void *)address, 0, bytes);
        return;
    }
    size_t chunk = (address - range->base) / SIM_CHUNK;
    atomic_fetch_and(&range->touched[chunk / 64], ~((uint64_t)1 << (chunk % 64)));
}

static bool all_zero(const char *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

/* The bytes from an address to the end of its chunk, at most `left`. */
static size_t piece_at(const struct sim_range *range, uintptr_t address, size_t left)
{
    size_t to_end = SIM_CHUNK - (address - range->base) % SIM_CHUNK;
    return to_end < left ? to_end : left;
}

static void copy_in(struct sim_range *range, uintptr_t to, const char *from, const struct sim_range *source,
                    size_t bytes)
{
    while (bytes > 0) {
        size_t piece = piece_at(range, to, bytes);
        bool unwritten = source != NULL && !is_touched(source, (uintptr_t)from, piece);
        if (unwritten || all_zero(from, piece)) {
            clear_piece(range, to, piece);
        } else {
            touch(range, to);
            memmove((void *)to, from, piece);
        }
        to += piece, from += piece, bytes -= piece;
    }
}

static void copy_out(char *to, const struct sim_range *source, uintptr_t from, size_t bytes)
{
    while (bytes > 0) {
        size_t piece = piece_at(source, from, bytes);
        if (is_touched(source, from, piece))
            memmove(to, (const void *)from, piece);
        else
            memset(to, 0, piece);
        to += piece, from += piece, bytes -= piece;
    }
}

/* The device range around an address, or NULL for host memory; *outside if the bytes run over its end. */
static struct sim_range *device_range(const void *address, size_t bytes, bool *outside)
{
    struct sim_range *range = find((uintptr_t)address);
    if (range == NULL || !is_device(range))
        return NULL;
    if (bytes > range->size - ((uintptr_t)address - range->base))
        *outside = true;
    return range;
}

/* Copies between any two kinds of memory, as cudaMemcpyDefault does. */
int sim_ranges_copy(void *destination, const void *source, size_t bytes)
{
    if (bytes == 0 || destination == source)
        return CUDA_OK;
    if (destination == NULL || source == NULL)
        return CUDA_INVALID_VALUE;
    bool outside = false;
    pthread_rwlock_rdlock(&mutex);
    struct sim_range *to = device_range(destination, bytes, &outside);
    struct sim_range *from = device_range(source, bytes, &outside);
    if (outside)
        ;
    else if (to != NULL)
        copy_in(to, (uintptr_t)destination, source, from, bytes);
    else if (from != NULL)
        copy_out(destination, from, (uintptr_t)source, bytes);
    else
        memmove(destination, source, bytes);
    pthread_rwlock_unlock(&mutex);
    return outside ? CUDA_INVALID_VALUE : CUDA_OK;
}

/* How many bytes from an address on lie in chunks that one word of bits says are all zeros. */
static size_t zeros_at(const struct sim_range *range, uintptr_t address, size_t left)
{
    size_t word = (address - range->base) / SIM_CHUNK / 64;
    if (atomic_load(&range->touched[word]) != 0)
        return 0;
    size_t to_end = range->base + (word + 1) * 64 * SIM_CHUNK - address;
    return to_end < left ? to_end : left;
}

static void fill_device(struct sim_range *range, uintptr_t to, int value, size_t bytes)
{
    while (bytes > 0) {
        size_t zeros = value == 0 ? zeros_at(range, to, bytes) : 0;
        size_t piece = zeros ? zeros : piece_at(range, to, bytes);
        if (zeros) {
            ;
        } else if (value == 0) {
            clear_piece(range, to, piece);
        } else {
            touch(range, to);
            memset((void *)to, value, piece);
        }
        to += piece, bytes -= piece;
    }
}

int sim_ranges_fill(void *destination, int value, size_t bytes)
{
    if (bytes == 0)
        return CUDA_OK;
    if (destination == NULL)
        return CUDA_INVALID_VALUE;
    bool outside = false;
    pthread_rwlock_rdlock(&mutex);
    struct sim_range *range = device_range(destination, bytes, &outside);
    if (outside)
        ;
    else if (range != NULL)
        fill_device(range, (uintptr_t)destination, value & 0xff, bytes);
    else
        memset(destination, value, bytes);
    pthread_rwlock_unlock(&mutex);
    return outside ? CUDA_INVALID_VALUE : CUDA_OK;
}

void sim_ranges_forget(void *address, size_t bytes)
{
    bool outside = false;
    pthread_rwlock_rdlock(&mutex);
    struct sim_range *range = bytes > 0 ? device_range(address, bytes, &outside) : NULL;
    if (range != NULL && !outside)
        fill_device(range, (uintptr_t)address, 0, bytes);
    pthread_rwlock_unlock(&mutex);
}
