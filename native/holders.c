/* Who holds what (see holders.h). */
#include "holders.h"

#include <stdlib.h>
#include <string.h>

#include "backlog.h"
#include "gallery.h"
#include "held.h"
#include "lock_order.h"
#include "owned.h"
#include "pending.h"
#include "places.h"

struct device {
    struct pml_lock lock;
    struct pml_owned_table blocks;
    uint64_t peaks; /* counts the new maxima of all pictures, from 1 */
};

static struct device devices[PML_MAX_DEVICES] = {
    [0 ... PML_MAX_DEVICES - 1] = {.peaks = 1},
};

PML_READ_OFTEN static _Atomic uint64_t owning; /* a bit for each device that may have blocks with an owner */
PML_READ_OFTEN static _Atomic bool following = true;
PML_READ_OFTEN static _Atomic bool ending; /* a profiled function ends: what it held goes */

bool pml_holders_idle(void)
{
    return !pml_gallery_recording() &&
           atomic_load_explicit(&owning, memory_order_relaxed) == 0;
}

/* ---- events ---- */

/* An owner's bytes are about to change for the first time since some picture's last maximum. */
PML_SELDOM static void show(int device, struct pml_held *held)
{
    for (uint64_t left = pml_gallery_groups(); left;)
        pml_picture_touch(pml_gallery_next(&left), device, held->index, pml_held_live(held));
    held->shown = devices[device].peaks;
}

static inline void prepare(int device, struct pml_held *held)
{
    if (held->shown != devices[device].peaks)
        show(device, held);
}

static inline void free_bytes(struct pml_held *held, int64_t size)
{
    pml_add_alone(&held->live, -size);
    if (atomic_load_explicit(&ending, memory_order_relaxed))
        pml_add_alone(&held->ended, size);
}

/* Bytes of blocks that are not in the table any more. */
static void release(int device, struct pml_held *held, int64_t size)
{
    prepare(device, held);
    free_bytes(held, size);
}

PML_SELDOM static void note_blocks(int device, bool there)
{
    uint64_t bit = UINT64_C(1) << device;
    if (there)
        atomic_fetch_or(&owning, bit);
    else
        atomic_fetch_and(&owning, ~bit);
}

/* After blocks came or went. */
static inline void tidy(int device)
{
    bool there = devices[device].blocks.used > 0;
    bool noted = atomic_load_explicit(&owning, memory_order_relaxed) >> device & 1;
    if (there != noted && (there || !pml_gallery_recording()))
        note_blocks(device, there);
    pml_owned_give_back_room(&devices[device].blocks);
}

/* There is no room for the owner's block. What is to be charged in its place: nobody; NULL where nobody has a block. */
PML_SELDOM static struct pml_held *make_ready(int device, const struct pml_owner *owner, struct pml_held *held)
{
    struct pml_owned_table *blocks = &devices[device].blocks;
    bool owned = owner != &pml_owner_nobody;
    if (owned && held && pml_held_make(device, PML_NOBODY) && pml_owned_make_room(blocks))
        return held;
    if (owned)
        pml_pictures_fail(pml_gallery_groups());
    return blocks->capacity ? pml_held_of(device, PML_NOBODY) : NULL;
}

static inline struct pml_held *ready(int device, struct pml_owner *owner)
{
    int index = pml_owner_number(owner);
    struct pml_held *held = index >= 0 ? pml_held_make(device, index) : NULL;
    return held && pml_owned_has_room(&devices[device].blocks) ? held : make_ready(device, owner, held);
}

/* From now on the owner has the block, and whoever had one there has it no more; a block that is freed is nobody's. Written
 * without branches on what comes: no processor can foresee it. */
static inline void count_block(int device, const void *pointer, int64_t size, struct pml_owner *owner)
{
    struct pml_owned_table *blocks = &devices[device].blocks;
    struct pml_held *held = ready(device, pointer ? owner : &pml_owner_nobody);
    if (!held)
        return;
    struct pml_owned *block = pml_owned_probe(blocks, pointer);
    int64_t kept = size & -(int64_t)(held->index != PML_NOBODY);
    if (block->pointer == 0 && !kept)
        return;
    struct pml_held *before = block->pointer ? block->held : held;
    prepare(device, before);
    prepare(device, held);
    free_bytes(before, block->size);
    pml_add_alone(&held->live, kept);
    pml_owned_set(blocks, block, pointer, kept, held);
}

/* A value of the device, for the pictures of these groups. */
static void see_in(uint64_t groups, int device, int64_t value, const struct pml_owner *owner)
{
    for (uint64_t left = groups; left;)
        devices[device].peaks += pml_picture_see(pml_gallery_next(&left), device, value, owner);
}

static void see(int device, int64_t value, const struct pml_owner *owner)
{
    see_in(pml_gallery_open(), device, value, owner);
}

void pml_holders_freed(int device, const void *pointer, int64_t value)
{
    count_block(device, pointer, 0, &pml_owner_nobody);
    tidy(device);
    see(device, value, NULL);
}

/* A free that the caching allocator puts off until streams are done with the block; its owner holds it until then. */
static void freed_on_streams(int device, const void *pointer, int64_t size)
{
    struct pml_owned_table *blocks = &devices[device].blocks;
    struct pml_owned *block = pml_owned_find(blocks, pointer);
    bool waits = pml_pending_freed(device, size, block ? block->held->index : -1);
    if (!block)
        return;
    if (!(waits && block->size == size))
        release(device, block->held, block->size);
    pml_owned_set(blocks, block, pointer, 0, block->held);
    tidy(device);
}

void pml_holders_allocated(int device, const void *pointer, int64_t size, int64_t value)
{
    struct pml_owner *owner = pml_gallery_recording() ? pml_place_owner() : NULL;
    count_block(device, pointer, size, owner ? owner : &pml_owner_nobody);
    tidy(device);
    see(device, value, owner);
}

/* ---- accelerators' reports, and locking ---- */

/* Whether a value this high would be a new maximum. */
static bool rises(uint64_t groups, int device, int64_t value)
{
    for (uint64_t left = groups; left;) {
        const struct pml_peak *peak = pml_gallery_next(&left)->device[device];
        if (!peak || peak->peak < value)
            return true;
    }
    return false;
}

/* Some value may be a new maximum: then the blocks of that moment are those of a picture. */
PML_SELDOM static void count_one_by_one(uint64_t groups, int device, const struct pml_report *report, int count, int64_t pending)
{
    for (int i = 0; i < count; i++) {
        count_block(device, report[i].pointer, report[i].size, report[i].owner);
        see_in(groups, device, report[i].allocated + pending, report[i].owner);
    }
}

PML_OFTEN static void count_together(uint64_t groups, int device, const struct pml_report *report, int count, int64_t pending,
                           int64_t highest)
{
    for (int i = 0; i < count; i++)
        count_block(device, report[i].pointer, report[i].size, report[i].owner);
    for (uint64_t left = groups; left;) {
        struct pml_series *series = &pml_gallery_next(&left)->device[device]->series;
        bool at_once = pml_series_add_all(series, count, highest);
        for (int i = 0; i < count && !at_once; i++)
            pml_series_add(series, report[i].allocated + pending);
    }
}

PML_OFTEN static void count_reports(int device, const struct pml_report *report, int count)
{
    int64_t pending = pml_pending_bytes(device);
    struct pml_events sum;
    pml_backlog_sum(report, count, pending, &sum);
    uint64_t groups = pml_gallery_open();
    if (rises(groups, device, sum.highest[PML_ACTIVE]))
        count_one_by_one(groups, device, report, count, pending);
    else
        count_together(groups, device, report, count, pending, sum.highest[PML_ACTIVE]);
    tidy(device);
    pml_meter_add(device, &sum);
}

static void lock_alone(int device)
{
    pml_lock_order_taken(PML_RANK_DEVICE, device);
    pml_lock_take(&devices[device].lock);
}

PML_OFTEN void pml_holders_lock(int device)
{
    lock_alone(device);
    if (pml_backlog_waits(device))
        pml_backlog_take(device, count_reports);
}

void pml_holders_unlock(int device)
{
    pml_lock_give(&devices[device].lock);
    pml_lock_order_given(PML_RANK_DEVICE, device);
}

void pml_holders_catch_up(void)
{
    for (int d = 1; d < pml_meter_devices(); d++)
        if (pml_backlog_waits(d)) {
            pml_holders_lock(d);
            pml_holders_unlock(d);
        }
}

PML_OFTEN void pml_holders_fold(void)
{
    int devices = pml_meter_devices();
    if (pml_meter_unfolded(PML_CPU))
        pml_meter_fold_device(PML_CPU);
    for (int d = 1; d < devices; d++)
        if (pml_backlog_waits(d) || pml_meter_unfolded(d)) {
            pml_holders_lock(d);
            pml_meter_fold_device(d);
            pml_holders_unlock(d);
        }
}

/* Blocks may wait for streams, and which is told to this thread alone. */
PML_SELDOM static void count_now(int device, const struct pml_report *report)
{
    pml_holders_lock(device);
    if (report->size < 0)
        freed_on_streams(device, report->pointer, -report->size);
    else
        pml_pending_allocated();
    struct pml_events sum;
    pml_backlog_sum(report, 1, pml_pending_bytes(device), &sum);
    int64_t value = sum.level[PML_ACTIVE];
    pml_meter_add(device, &sum);
    if (report->size < 0)
        see(device, value, NULL);
    else
        pml_holders_allocated(device, report->pointer, report->size, value);
    pml_holders_unlock(device);
}

PML_OFTEN void pml_holders_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved)
{
    if (pml_pending_in_use()) {
        count_now(device, &(struct pml_report){pointer, size, allocated, reserved, NULL});
        return;
    }
    bool owned = size > 0 && pml_gallery_recording();
    while (!pml_backlog_add(device, pointer, size, allocated, reserved, owned)) {
        pml_holders_lock(device);
        pml_holders_unlock(device);
    }
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
static struct pml_held *held_by(int device, const struct pml_owner *owner)
{
    int index = atomic_load_explicit(&owner->index, memory_order_relaxed);
    return index >= 0 ? pml_held_of(device, index) : NULL;
}

int64_t pml_holders_begin(int device, const struct pml_owner *owner)
{
    if (!followed(device))
        return -1;
    struct pml_held *held = held_by(device, owner);
    if (held)
        held->ended_before = atomic_load_explicit(&held->ended, memory_order_relaxed);
    return pml_held_live(held);
}

static int64_t ended_since(const struct pml_held *held)
{
    return held ? atomic_load_explicit(&held->ended, memory_order_relaxed) - held->ended_before : 0;
}

void pml_holders_of_line(int device, const struct pml_code *code, int line, int64_t *live, int64_t *ended)
{
    unsigned i = code ? (unsigned)line - (unsigned)code->owner_line : 0;
    const struct pml_owner *owner = code && i < (unsigned)code->owners ? code->owner[i] : NULL;
    *live = followed(device) ? 0 : -1;
    *ended = 0;
    pml_holders_lock(device);
    for (; owner && *live >= 0; owner = owner->next) {
        const struct pml_held *held = held_by(device, owner);
        *live += pml_held_live(held);
        *ended += ended_since(held);
    }
    pml_holders_unlock(device);
}

void pml_holders_ending(bool now)
{
    if (atomic_load_explicit(&ending, memory_order_relaxed) == now)
        return;
    pml_holders_catch_up();
    atomic_store_explicit(&ending, now, memory_order_relaxed);
}

void pml_holders_adjust(int device, enum pml_metric metric, int64_t value)
{
    pml_holders_lock(device);
    pml_meter_adjust(device, metric, value);
    if (metric == metric_of(device) && followed(device))
        see(device, value, pml_place_owner());
    pml_holders_unlock(device);
}

/* A block that waited for streams is active no more. The device is locked. */
static void released(int device, int index, int64_t size)
{
    struct pml_held *held = index >= 0 ? pml_held_of(device, index) : NULL;
    if (held)
        release(device, held, size);
}

void pml_holders_settle(int device, int64_t pending)
{
    pml_holders_lock(device);
    pml_pending_settle(device, pending, released);
    pml_holders_unlock(device);
}

void pml_holders_event_done(const void *event)
{
    struct pml_pending_end end = pml_pending_done(event);
    if (end.device <= 0)
        return;
    struct pml_levels now;
    pml_holders_lock(end.device);
    released(end.device, end.index, end.size);
    pml_meter_read(end.device, &now);
    int64_t value = now.level[PML_ALLOCATED] + pml_pending_bytes(end.device);
    pml_meter_adjust(end.device, PML_ACTIVE, value);
    see(end.device, value, NULL);
    pml_holders_unlock(end.device);
}

static void drop_blocks(int device)
{
    note_blocks(device, false);
    pml_owned_clear(&devices[device].blocks);
    pml_pending_disown(device);
    for (int i = pml_held_end(device) - 1; i >= 0; i--) {
        struct pml_held *held = pml_held_of(device, i);
        if (pml_held_live(held))
            release(device, held, held->live);
    }
}

void pml_holders_follow_accelerators(bool follow)
{
    atomic_store(&following, follow);
    for (int d = 1; d < PML_MAX_DEVICES; d++) {
        pml_holders_lock(d);
        drop_blocks(d);
        pml_holders_unlock(d);
    }
}

void pml_holders_see_now(struct pml_picture *picture)
{
    const struct pml_owner *owner = pml_place_owner();
    for (int d = 0; d < pml_meter_devices(); d++) {
        if (!pml_meter_used(d) || !followed(d))
            continue;
        struct pml_levels now;
        pml_holders_lock(d);
        pml_meter_read(d, &now);
        const struct pml_peak *peak = picture->device[d];
        int64_t value = now.level[metric_of(d)];
        if (!peak || value > peak->peak) /* else a function that begins is no event */
            see_in(UINT64_C(1) << picture->group, d, value, owner);
        pml_holders_unlock(d);
    }
}

/* ---- going away, forks ---- */

void pml_holders_forget_code(struct pml_code *code)
{
    if (!code->owner)
        return;
    pml_holders_lock_all();
    pml_owners_forget_code(code);
    pml_holders_unlock_all();
}

void pml_holders_lock_all(void)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        lock_alone(d);
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        pml_backlog_shut(d, count_reports); /* no report names an owner that goes away */
}

void pml_holders_unlock_all(void)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        tidy(d);
    for (int d = PML_MAX_DEVICES - 1; d >= 0; d--) {
        pml_backlog_open(d);
        pml_holders_unlock(d);
    }
}

void pml_holders_reset(void)
{
    pml_holders_lock_all();
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        drop_blocks(d);
    pml_holders_unlock_all();
}
