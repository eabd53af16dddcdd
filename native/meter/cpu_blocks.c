/* Live blocks (see cpu_blocks.h): a hash table in shards, open addressing, linear probing, deletion by shifting back.
 */
#include "meter/cpu_blocks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lock_order.h"
#include "base/pointer_hash.h"

#define SHARD_BITS 4
#define SHARDS (1 << SHARD_BITS)
#define FIRST_CAPACITY 256

struct block {
    uintptr_t pointer; /* 0: free slot */
    size_t size;
};

struct shard {
    pthread_mutex_t mutex;
    struct block *slot;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
};

static struct shard shards[SHARDS] = {
    [0 ... SHARDS - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER},
};

static void lock(int number)
{
    pml_lock_order_taken(PML_RANK_BLOCKS, number);
    pthread_mutex_lock(&shards[number].mutex);
}

static void unlock(int number)
{
    pthread_mutex_unlock(&shards[number].mutex);
    pml_lock_order_given(PML_RANK_BLOCKS, number);
}

/* The high bits of the hash give the shard, the low ones the slot in it. */
static struct shard *lock_shard(uintptr_t pointer)
{
    int number = (int)(pml_pointer_hash((const void *)pointer) >> (32 - SHARD_BITS));
    lock(number);
    return &shards[number];
}

static void unlock_shard(const struct shard *shard)
{
    unlock((int)(shard - shards));
}

/* The slot that holds the pointer, or the free one where it belongs. The table is never full. */
static struct block *probe(const struct shard *shard, uintptr_t pointer)
{
    size_t mask = shard->capacity - 1;
    size_t i = pml_pointer_hash((const void *)pointer) & mask;
    while (shard->slot[i].pointer != 0 && shard->slot[i].pointer != pointer)
        i = (i + 1) & mask;
    return &shard->slot[i];
}

static bool grow(struct shard *shard)
{
    struct shard wider = *shard;
    wider.capacity = shard->capacity ? shard->capacity * 2 : FIRST_CAPACITY;
    wider.slot = calloc(wider.capacity, sizeof *wider.slot);
    if (!wider.slot)
        return false;
    for (size_t i = 0; i < shard->capacity; i++)
        if (shard->slot[i].pointer != 0)
            *probe(&wider, shard->slot[i].pointer) = shard->slot[i];
    free(shard->slot);
    shard->slot = wider.slot;
    shard->capacity = wider.capacity;
    return true;
}

/* Close the gap that a removed entry leaves, so that probing still finds the entries behind it. */
static void shift_back(struct shard *shard, size_t gap)
{
    size_t mask = shard->capacity - 1;
    for (size_t i = (gap + 1) & mask; shard->slot[i].pointer != 0; i = (i + 1) & mask) {
        size_t home = pml_pointer_hash((const void *)shard->slot[i].pointer) & mask;
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            shard->slot[gap] = shard->slot[i];
            gap = i;
        }
    }
    shard->slot[gap] = (struct block){0, 0};
}

/* `*before` gets the size that was known, or 0. False when memory runs out. */
static bool enter(const void *pointer, size_t size, bool only_new, size_t *before)
{
    struct shard *shard = lock_shard((uintptr_t)pointer);
    bool room = shard->used * 4 < shard->capacity * 3 || grow(shard);
    *before = 0;
    if (room) {
        struct block *block = probe(shard, (uintptr_t)pointer);
        bool fresh = block->pointer == 0;
        *before = fresh ? 0 : block->size;
        if (fresh || !only_new) {
            *block = (struct block){(uintptr_t)pointer, size};
            shard->used += fresh;
        }
    }
    unlock_shard(shard);
    return room;
}

bool pml_cpu_blocks_put(const void *pointer, size_t size, size_t *before)
{
    return enter(pointer, size, false, before);
}

bool pml_cpu_blocks_seed(const void *pointer, size_t size)
{
    size_t before;
    return enter(pointer, size, true, &before) && before == 0;
}

size_t pml_cpu_blocks_take(const void *pointer)
{
    struct shard *shard = lock_shard((uintptr_t)pointer);
    size_t size = 0;
    if (shard->used) {
        struct block *block = probe(shard, (uintptr_t)pointer);
        if (block->pointer != 0) {
            size = block->size;
            shift_back(shard, (size_t)(block - shard->slot));
            shard->used--;
        }
    }
    unlock_shard(shard);
    return size;
}

size_t pml_cpu_blocks_size(const void *pointer)
{
    struct shard *shard = lock_shard((uintptr_t)pointer);
    size_t size = shard->used ? probe(shard, (uintptr_t)pointer)->size : 0;
    unlock_shard(shard);
    return size;
}

void pml_cpu_blocks_lock_all(void)
{
    for (int i = 0; i < SHARDS; i++)
        lock(i);
}

void pml_cpu_blocks_unlock_all(void)
{
    for (int i = SHARDS - 1; i >= 0; i--)
        unlock(i);
}

size_t pml_cpu_blocks_count(void)
{
    size_t count = 0;
    pml_cpu_blocks_lock_all();
    for (int i = 0; i < SHARDS; i++)
        count += shards[i].used;
    pml_cpu_blocks_unlock_all();
    return count;
}

void pml_cpu_blocks_clear(void)
{
    pml_cpu_blocks_lock_all();
    for (int i = 0; i < SHARDS; i++) {
        free(shards[i].slot);
        shards[i].slot = NULL;
        shards[i].capacity = shards[i].used = 0;
    }
    pml_cpu_blocks_unlock_all();
}
