/* Freed blocks that wait for another stream (see stream_pending.h). */
#include "meter/stream_pending.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/lock_order.h"

#define MOST_EVENTS 16

/* CUDA events recorded on this thread since the allocator's last report. */
static _Thread_local struct {
    int count;
    const void *event[MOST_EVENTS];
} recorded;

struct waiting {
    struct waiting *next;
    int device;
    int index;
    int left;
    int64_t size;
    const void *event[MOST_EVENTS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct waiting *waiting;
static _Atomic int waiting_count;
static _Atomic int64_t bytes[PML_MAX_DEVICES];
static _Atomic bool uncertain[PML_MAX_DEVICES];

/* Spares programs that never use a second stream the look at thread-local data. */
static _Atomic bool in_use;

bool pml_stream_pending_in_use(void)
{
    return atomic_load_explicit(&in_use, memory_order_relaxed);
}

void pml_stream_pending_recorded(const void *event)
{
    atomic_store_explicit(&in_use, true, memory_order_relaxed);
    if (recorded.count < MOST_EVENTS)
        recorded.event[recorded.count++] = event;
}

void pml_stream_pending_allocated(void)
{
    if (!pml_stream_pending_in_use())
        return;
    recorded.count = 0;
}

static void change(int device, int64_t amount)
{
    atomic_fetch_add(&bytes[device], amount);
    atomic_store(&uncertain[device], true);
}

bool pml_stream_pending_freed(int device, int64_t size, int index)
{
    if (!pml_stream_pending_in_use() || recorded.count == 0)
        return false;
    struct waiting *block = malloc(sizeof *block);
    if (block) {
        *block = (struct waiting){.device = device, .index = index, .left = recorded.count, .size = size};
        for (int i = 0; i < recorded.count; i++)
            block->event[i] = recorded.event[i];
        pml_stream_pending_lock();
        block->next = waiting;
        waiting = block;
        atomic_fetch_add(&waiting_count, 1);
        pml_stream_pending_unlock();
    }
    change(device, size);
    recorded.count = 0;
    return block;
}

static void unlink_block(struct waiting **link)
{
    struct waiting *block = *link;
    *link = block->next;
    free(block);
    atomic_fetch_sub(&waiting_count, 1);
}

static bool strike_out(struct waiting *block, const void *event)
{
    for (int i = 0; i < MOST_EVENTS; i++)
        if (block->event[i] == event) {
            block->event[i] = NULL;
            block->left--;
            return true;
        }
    return false;
}

struct pml_stream_pending_end pml_stream_pending_done(const void *event)
{
    struct pml_stream_pending_end end = {.device = -1, .index = -1};
    if (!event || atomic_load_explicit(&waiting_count, memory_order_acquire) == 0)
        return end;
    pml_stream_pending_lock();
    for (struct waiting **link = &waiting; *link; link = &(*link)->next) {
        struct waiting *block = *link;
        if (!strike_out(block, event))
            continue;
        if (block->left == 0) {
            end = (struct pml_stream_pending_end){block->device, block->index, block->size};
            change(block->device, -block->size);
            unlink_block(link);
        }
        break;
    }
    pml_stream_pending_unlock();
    return end;
}

int64_t pml_stream_pending_bytes(int device)
{
    return atomic_load_explicit(&bytes[device], memory_order_relaxed);
}

bool pml_stream_pending_unsure(int device)
{
    return atomic_load_explicit(&uncertain[device], memory_order_relaxed) || pml_stream_pending_bytes(device) != 0;
}

static void drop_device(int device, pml_stream_pending_released *released)
{
    for (struct waiting **link = &waiting; *link;) {
        const struct waiting *block = *link;
        if (block->device == device) {
            if (released)
                released(device, block->index, block->size);
            unlink_block(link);
        } else {
            link = &(*link)->next;
        }
    }
}

void pml_stream_pending_forget_owners(int device)
{
    pml_stream_pending_lock();
    for (struct waiting *block = waiting; block; block = block->next)
        if (block->device == device)
            block->index = -1;
    pml_stream_pending_unlock();
}

bool pml_stream_pending_correct(int device, int64_t truth, pml_stream_pending_released *released)
{
    atomic_store(&uncertain[device], false);
    bool wrong = pml_stream_pending_bytes(device) != truth;
    if (wrong) {
        pml_stream_pending_lock();
        if (truth == 0)
            drop_device(device, released);
        atomic_store(&bytes[device], truth);
        pml_stream_pending_unlock();
    }
    return wrong;
}

void pml_stream_pending_lock(void)
{
    pml_lock_order_taken(PML_RANK_PENDING, 0);
    pthread_mutex_lock(&mutex);
}

void pml_stream_pending_unlock(void)
{
    pthread_mutex_unlock(&mutex);
    pml_lock_order_given(PML_RANK_PENDING, 0);
}
