/* Who holds what (see ledger.h). */
#include "holders/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "holders/active_pictures.h"
#include "holders/owner_bytes.h"
#include "base/lock.h"
#include "base/lock_order.h"
#include "holders/owned_blocks.h"
#include "meter/stream_pending.h"
#include "holders/thread_line.h"
#include "meter/window.h"

struct device {
    struct pml_lock lock;
    struct pml_owned_blocks blocks;
    uint64_t peaks; /* counts the new maxima of all pictures, from 1 */
};

static struct device devices[PML_MAX_DEVICES] = {
    [0 ... PML_MAX_DEVICES - 1] = {.peaks = 1},
};

static _Atomic uint64_t owning; /* a bit for each device that may have blocks with an owner */
static _Atomic bool following = true;
static _Atomic bool unwatched;
static _Thread_local bool ending;    /* from a function's return on this thread to its next event */
static _Atomic uint64_t watches = 1; /* how often functions came to be watched; needs the GIL to change */

static bool (*_Atomic ask_if_ending)(void);

void pml_ledger_ask_if_ending(bool (*ask)(void))
{
    atomic_store_explicit(&ask_if_ending, ask, memory_order_relaxed);
}

static bool still_ending(void)
{
    bool (*ask)(void) = ending ? atomic_load_explicit(&ask_if_ending, memory_order_relaxed) : NULL;
    return ending = ending && (!ask || ask());
}

bool pml_ledger_idle(void)
{
    return !pml_active_pictures_any() && atomic_load_explicit(&owning, memory_order_relaxed) == 0;
}

/* ---- events ---- */

/* An owner's bytes are about to change for the first time since some picture's last maximum. */
static void publish(int device, struct pml_owner_bytes *owner_bytes)
{
    for (uint64_t left = pml_active_pictures_groups(); left;)
        pml_peak_picture_before_change(pml_active_pictures_next(&left), device, owner_bytes->index,
                                       pml_owner_bytes_live(owner_bytes));
    owner_bytes->published = devices[device].peaks;
}

static inline void prepare(int device, struct pml_owner_bytes *owner_bytes)
{
    if (owner_bytes->published != devices[device].peaks)
        publish(device, owner_bytes);
}

static void free_unwatched(struct pml_owner_bytes *owner_bytes, int64_t size)
{
    if (owner_bytes->after_watch != watches)
        owner_bytes->after = 0;
    owner_bytes->after_watch = watches;
    owner_bytes->after += size;
}

/* Blocks that are freed only because a function has ended, or after all of them have, were kept as long as possible. */
static inline void free_bytes(struct pml_owner_bytes *owner_bytes, int64_t size)
{
    pml_numbers_add_unshared(&owner_bytes->live, -size);
    if (atomic_load_explicit(&unwatched, memory_order_relaxed))
        free_unwatched(owner_bytes, size);
    else if (still_ending())
        pml_numbers_add_unshared(&owner_bytes->ended, size);
}

/* Of what the line made in its last run that allocated; `size` is negative for what is freed. */
static inline void count_young(struct pml_owner_bytes *owner_bytes, int64_t size, uint64_t run)
{
    int64_t counted = -(int64_t)(run == atomic_load_explicit(&owner_bytes->young_run, memory_order_relaxed));
    pml_numbers_add_unshared(&owner_bytes->young, size & counted);
}

static inline uint64_t begin_young(struct pml_owner_bytes *owner_bytes, int64_t size)
{
    uint64_t run = atomic_load_explicit(&owner_bytes->run, memory_order_relaxed) + 1; /* from 1 */
    int64_t same = -(int64_t)(run == atomic_load_explicit(&owner_bytes->young_run, memory_order_relaxed));
    int64_t young = atomic_load_explicit(&owner_bytes->young, memory_order_relaxed) & same;
    atomic_store_explicit(&owner_bytes->young, young + size, memory_order_relaxed);
    atomic_store_explicit(&owner_bytes->young_run, run, memory_order_relaxed);
    return run;
}

/* Bytes of blocks that are not in the table any more. */
static void release(int device, struct pml_owner_bytes *owner_bytes, int64_t size)
{
    prepare(device, owner_bytes);
    free_bytes(owner_bytes, size);
}

static void note_blocks(int device, bool there)
{
    uint64_t bit = UINT64_C(1) << device;
    if (there)
        atomic_fetch_or(&owning, bit);
    else
        atomic_fetch_and(&owning, ~bit);
}

/* After blocks came or went. */
static inline void update_owned_bit(int device)
{
    bool there = devices[device].blocks.used > 0;
    bool noted = atomic_load_explicit(&owning, memory_order_relaxed) >> device & 1;
    if (there != noted && (there || !pml_active_pictures_any()))
        note_blocks(device, there);
    pml_owned_blocks_give_back_room(&devices[device].blocks);
}

/* There is no room for the owner's block: nobody is charged instead; NULL where no block has an owner. */
static struct pml_owner_bytes *make_ready(int device, const struct pml_owner *owner,
                                          struct pml_owner_bytes *owner_bytes)
{
    struct pml_owned_blocks *blocks = &devices[device].blocks;
    bool owned = owner != &pml_owners_nobody;
    if (owned && owner_bytes && pml_owner_bytes_make(device, PML_NOBODY) && pml_owned_blocks_make_room(blocks))
        return owner_bytes;
    if (owned)
        pml_active_pictures_fail(pml_active_pictures_groups());
    return blocks->capacity ? pml_owner_bytes_of(device, PML_NOBODY) : NULL;
}

static inline struct pml_owner_bytes *ready(int device, struct pml_owner *owner)
{
    int index = pml_owners_number(owner);
    struct pml_owner_bytes *owner_bytes = index >= 0 ? pml_owner_bytes_make(device, index) : NULL;
    return owner_bytes && pml_owned_blocks_has_room(&devices[device].blocks) ? owner_bytes
                                                                             : make_ready(device, owner, owner_bytes);
}

/* Assigns the block to the owner, replacing any previous owner at that address; a freed block belongs to nobody.
 * Without branches on the kind of event, which no processor can predict. */
static inline void count_block(int device, const void *pointer, int64_t size, struct pml_owner *owner)
{
    struct pml_owned_blocks *blocks = &devices[device].blocks;
    struct pml_owner_bytes *owner_bytes = ready(device, pointer ? owner : &pml_owners_nobody);
    if (!owner_bytes)
        return;
    struct pml_owned_block *block = pml_owned_blocks_probe(blocks, pointer);
    int64_t kept = size & -(int64_t)(owner_bytes->index != PML_NOBODY);
    if (block->pointer == 0 && !kept)
        return;
    struct pml_owner_bytes *before = block->pointer ? block->owner_bytes : owner_bytes;
    prepare(device, before);
    prepare(device, owner_bytes);
    free_bytes(before, block->size);
    count_young(before, -block->size, block->run);
    pml_numbers_add_unshared(&owner_bytes->live, kept);
    uint64_t run = kept ? begin_young(owner_bytes, kept) : 0;
    pml_owned_blocks_set(blocks, block, pointer, kept, owner_bytes, run);
}

/* A value of the device, for the pictures of these groups. */
static void observe_in(uint64_t groups, int device, int64_t value, const struct pml_owner *owner)
{
    for (uint64_t left = groups; left;)
        devices[device].peaks += pml_peak_picture_observe(pml_active_pictures_next(&left), device, value, owner);
}

static void observe(int device, int64_t value, const struct pml_owner *owner)
{
    observe_in(pml_active_pictures_open(), device, value, owner);
}

/* A block came. A device that was not in use when the functions began has no value in their pictures yet. */
static void observe_rise_in(uint64_t groups, int device, int64_t size, int64_t value, const struct pml_owner *owner)
{
    for (uint64_t left = groups; left;)
        pml_peak_picture_begin(pml_active_pictures_next(&left), device, value - size);
    observe_in(groups, device, value, owner);
}

void pml_ledger_freed(int device, const void *pointer, int64_t value)
{
    count_block(device, pointer, 0, &pml_owners_nobody);
    update_owned_bit(device);
    observe(device, value, NULL);
}

/* A free that the caching allocator puts off until streams are done with the block; its owner holds it until then. */
static void freed_on_streams(int device, const void *pointer, int64_t size)
{
    struct pml_owned_blocks *blocks = &devices[device].blocks;
    struct pml_owned_block *block = pml_owned_blocks_find(blocks, pointer);
    bool waits = pml_stream_pending_freed(device, size, block ? block->owner_bytes->index : -1);
    if (!block)
        return;
    if (!(waits && block->size == size))
        release(device, block->owner_bytes, block->size);
    count_young(block->owner_bytes, -block->size, block->run);
    pml_owned_blocks_set(blocks, block, pointer, 0, block->owner_bytes, 0);
    update_owned_bit(device);
}

void pml_ledger_allocated(int device, const void *pointer, int64_t size, int64_t value)
{
    struct pml_owner *owner = pml_active_pictures_any() ? pml_thread_line_owner() : NULL;
    count_block(device, pointer, size, owner ? owner : &pml_owners_nobody);
    update_owned_bit(device);
    observe_rise_in(pml_active_pictures_open(), device, size, value, owner);
}

/* ---- locking ---- */

void pml_ledger_lock(int device)
{
    pml_lock_order_taken(PML_RANK_DEVICE, device);
    pml_lock_take(&devices[device].lock);
}

void pml_ledger_unlock(int device)
{
    pml_lock_give(&devices[device].lock);
    pml_lock_order_given(PML_RANK_DEVICE, device);
}

void pml_ledger_fold(void)
{
    int devices = pml_meter_devices();
    if (pml_meter_unfolded(PML_CPU))
        pml_window_fold_device(PML_CPU);
    for (int d = 1; d < devices; d++)
        if (pml_meter_unfolded(d)) {
            pml_ledger_lock(d);
            pml_window_fold_device(d);
            pml_ledger_unlock(d);
        }
}

/* ---- accelerators' reports ---- */

static int64_t note_report(int device, int64_t size, int64_t allocated, int64_t reserved)
{
    int64_t active = allocated + pml_stream_pending_bytes(device);
    pml_meter_set(device, size, (int64_t[PML_METRICS]){active, allocated, reserved});
    return active;
}

void pml_ledger_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved)
{
    pml_ledger_lock(device);
    if (size < 0) {
        freed_on_streams(device, pointer, -size);
        observe(device, note_report(device, size, allocated, reserved), NULL);
    } else {
        pml_stream_pending_allocated();
        pml_ledger_allocated(device, pointer, size, note_report(device, size, allocated, reserved));
    }
    pml_ledger_unlock(device);
}

/* ---- values without blocks ---- */

static enum pml_metric metric_of(int device)
{
    return device == PML_CPU ? PML_ALLOCATED : PML_ACTIVE;
}

static bool followed(int device)
{
    return device == PML_CPU || atomic_load_explicit(&following, memory_order_relaxed);
}

/* What is known of an owner; NULL if it never held anything. */
static struct pml_owner_bytes *owner_bytes_of(int device, const struct pml_owner *owner)
{
    int index = atomic_load_explicit(&owner->index, memory_order_relaxed);
    return index >= 0 ? pml_owner_bytes_of(device, index) : NULL;
}

/* The owner's line begins once more: what was made until now is no more of its last run. */
static void begin_run(struct pml_owner_bytes *owner_bytes, int64_t *live, int64_t *old)
{
    uint64_t run = atomic_load_explicit(&owner_bytes->run, memory_order_relaxed) + 1;
    uint64_t young_run = atomic_load_explicit(&owner_bytes->young_run, memory_order_relaxed);
    atomic_store_explicit(&owner_bytes->run, run, memory_order_relaxed);
    owner_bytes->ended_before = atomic_load_explicit(&owner_bytes->ended, memory_order_relaxed);
    if (!young_run)
        return;
    int64_t bytes = pml_owner_bytes_live(owner_bytes);
    int64_t young = young_run == run ? atomic_load_explicit(&owner_bytes->young, memory_order_relaxed) : 0;
    *old += bytes - young;
    *live = (*live < 0 ? 0 : *live) + bytes;
}

void pml_ledger_begin_line(int device, struct pml_owner *owner, uint64_t since, int64_t *live, int64_t *old)
{
    *live = -1;
    *old = 0;
    if (!followed(device))
        return;
    for (; owner; owner = owner->next) {
        if (owner->born < since)
            continue;
        const struct pml_owner *backward = atomic_load_explicit(&owner->in_backward, memory_order_acquire);
        struct pml_owner_bytes *own = owner_bytes_of(device, owner),
                               *late = backward ? owner_bytes_of(device, backward) : NULL;
        if (own)
            begin_run(own, live, old);
        if (late)
            begin_run(late, live, old);
    }
}

/* What has gone since the line last began, but was kept as long as it could be. */
static int64_t gone_at_end(const struct pml_owner_bytes *owner_bytes)
{
    int64_t ended = atomic_load_explicit(&owner_bytes->ended, memory_order_relaxed) - owner_bytes->ended_before;
    return ended + (owner_bytes->after_watch == watches ? owner_bytes->after : 0);
}

static void add_end(int device, const struct pml_owner *owner, int64_t *live, int64_t *end)
{
    const struct pml_owner_bytes *owner_bytes = owner ? owner_bytes_of(device, owner) : NULL;
    if (!owner_bytes)
        return;
    *live += pml_owner_bytes_live(owner_bytes);
    *end += pml_owner_bytes_live(owner_bytes) + gone_at_end(owner_bytes);
}

void pml_ledger_of_line(int device, const struct pml_code *code, int line, int64_t *live, int64_t *end)
{
    *live = *end = 0;
    pml_ledger_lock(device);
    for (const struct pml_owner *owner = code ? pml_owners_of_line(code, line) : NULL; owner; owner = owner->next)
        if (owner->born >= code->since) {
            add_end(device, owner, live, end);
            add_end(device, owner->in_backward, live, end);
        }
    pml_ledger_unlock(device);
}

void pml_ledger_set_phase(enum pml_phase now)
{
    bool before = atomic_load_explicit(&unwatched, memory_order_relaxed), after = now == PML_UNWATCHED;
    ending = now == PML_ENDING;
    if (before == after)
        return;
    if (before)
        watches++;
    atomic_store_explicit(&unwatched, after, memory_order_relaxed);
}

void pml_ledger_adjust(int device, enum pml_metric metric, int64_t value)
{
    pml_ledger_lock(device);
    pml_meter_adjust(device, metric, value);
    if (metric == metric_of(device) && followed(device))
        observe(device, value, pml_thread_line_owner());
    pml_ledger_unlock(device);
}

/* A block that waited for streams is active no more. The device is locked. */
static void released(int device, int index, int64_t size)
{
    struct pml_owner_bytes *owner_bytes = index >= 0 ? pml_owner_bytes_of(device, index) : NULL;
    if (owner_bytes)
        release(device, owner_bytes, size);
}

void pml_ledger_correct_pending(int device, int64_t pending)
{
    pml_ledger_lock(device);
    pml_stream_pending_correct(device, pending, released);
    pml_ledger_unlock(device);
}

void pml_ledger_event_done(const void *event)
{
    struct pml_stream_pending_end end = pml_stream_pending_done(event);
    if (end.device <= 0)
        return;
    struct pml_levels now;
    pml_ledger_lock(end.device);
    released(end.device, end.index, end.size);
    pml_meter_read(end.device, &now);
    int64_t value = now.level[PML_ALLOCATED] + pml_stream_pending_bytes(end.device);
    pml_meter_adjust(end.device, PML_ACTIVE, value);
    observe(end.device, value, NULL);
    pml_ledger_unlock(end.device);
}

static void drop_blocks(int device)
{
    note_blocks(device, false);
    pml_owned_blocks_clear(&devices[device].blocks);
    pml_stream_pending_forget_owners(device);
    for (int i = pml_owner_bytes_end(device) - 1; i >= 0; i--) {
        struct pml_owner_bytes *owner_bytes = pml_owner_bytes_of(device, i);
        if (pml_owner_bytes_live(owner_bytes))
            release(device, owner_bytes, owner_bytes->live);
        if (owner_bytes)
            owner_bytes->young = 0;
    }
}

static void forget_blocks(int first_device)
{
    for (int d = first_device; d < PML_MAX_DEVICES; d++) {
        pml_ledger_lock(d);
        drop_blocks(d);
        pml_ledger_unlock(d);
    }
}

void pml_ledger_follow_accelerators(bool follow)
{
    atomic_store(&following, follow);
    forget_blocks(PML_CPU + 1);
}

void pml_ledger_forget_blocks(void)
{
    forget_blocks(PML_CPU);
}

void pml_ledger_observe_now(struct pml_peak_picture *picture)
{
    const struct pml_owner *owner = pml_thread_line_owner();
    for (int d = 0; d < pml_meter_devices(); d++) {
        if (!pml_meter_used(d) || !followed(d))
            continue;
        struct pml_levels now;
        pml_ledger_lock(d);
        pml_meter_read(d, &now);
        const struct pml_peak *peak = picture->device[d];
        int64_t value = now.level[metric_of(d)];
        if (!peak || value > peak->peak) /* else a function that begins is no event */
            observe_in(UINT64_C(1) << picture->group, d, value, owner);
        pml_ledger_unlock(d);
    }
}

/* ---- going away, forks ---- */

void pml_ledger_lock_all(void)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        pml_ledger_lock(d);
}

void pml_ledger_unlock_all(void)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        update_owned_bit(d);
    for (int d = PML_MAX_DEVICES - 1; d >= 0; d--)
        pml_ledger_unlock(d);
}

void pml_ledger_reset(void)
{
    pml_ledger_lock_all();
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        drop_blocks(d);
    pml_ledger_unlock_all();
}
