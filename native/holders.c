/* Who holds what (see holders.h). */
#include "holders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backlog.h"
#include "failures.h"
#include "owned.h"
#include "pending.h"
#include "places.h"

/* What an owner holds. */
struct held {
    int64_t live;
    int64_t ended; /* freed as profiled functions ended, since its line last began */
    uint64_t shown; /* the device's `peaks` when all pictures were told what it held */
};

struct device {
    pthread_mutex_t mutex;
    struct pml_owned_table blocks;
    struct held *held; /* by the owner's index */
    _Atomic int helds;
    uint64_t peaks; /* counts the new maxima of all pictures, from 1 */
};

static struct device devices[PML_MAX_DEVICES] = {
    [0 ... PML_MAX_DEVICES - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER, .peaks = 1},
};

static struct pml_picture *pictures[PML_MAX_GROUPS];
static _Atomic uint64_t active; /* a bit for each picture there is */
static _Atomic int owning; /* devices with blocks that have an owner */
static _Atomic bool following = true;
static _Atomic bool ending; /* a profiled function ends: what it held goes */

bool pml_holders_idle(void)
{
    return atomic_load_explicit(&active, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&owning, memory_order_relaxed) == 0;
}

/* ---- events ---- */

/* The next picture of a set of groups, taken out of it. */
static struct pml_picture *next_picture(uint64_t *groups)
{
    int group = __builtin_ctzll(*groups);
    *groups &= *groups - 1;
    return pictures[group];
}

static bool cover(struct device *dev, int index)
{
    if (index < dev->helds)
        return true;
    int helds = dev->helds ? dev->helds : 32;
    while (helds <= index)
        helds *= 2;
    struct held *grown = realloc(dev->held, (size_t)helds * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + dev->helds, 0, (size_t)(helds - dev->helds) * sizeof *grown);
    dev->held = grown;
    dev->helds = helds;
    return true;
}

/* An owner's bytes are about to change for the first time since some picture's last maximum. */
static void show(int device, int index, struct held *held)
{
    for (uint64_t left = atomic_load_explicit(&active, memory_order_acquire); left;)
        pml_picture_touch(next_picture(&left), device, index, held->live);
    held->shown = devices[device].peaks;
}

static void change(int device, int index, int64_t amount)
{
    struct held *held = &devices[device].held[index];
    if (held->shown != devices[device].peaks)
        show(device, index, held);
    held->live += amount;
    if (amount < 0 && atomic_load_explicit(&ending, memory_order_relaxed))
        held->ended -= amount;
}

static struct pml_owned take(int device, const void *pointer)
{
    struct pml_owned block = pml_owned_take(&devices[device].blocks, pointer);
    if (block.owner && devices[device].blocks.used == 0)
        atomic_fetch_sub(&owning, 1);
    return block;
}

uint64_t pml_holders_groups_open(void)
{
    uint64_t open = 0;
    for (uint64_t left = atomic_load_explicit(&active, memory_order_acquire); left;) {
        const struct pml_picture *picture = next_picture(&left);
        if (atomic_load_explicit(&picture->open, memory_order_relaxed) > 0)
            open |= UINT64_C(1) << picture->group;
    }
    return open;
}

/* A value of the device, for the pictures of these groups. */
static void see_in(uint64_t groups, int device, int64_t value, const struct pml_owner *owner)
{
    for (uint64_t left = groups; left;)
        devices[device].peaks += pml_picture_see(next_picture(&left), device, value, owner);
}

static void see(int device, int64_t value, const struct pml_owner *owner)
{
    see_in(pml_holders_groups_open(), device, value, owner);
}

static void drop_block(int device, const void *pointer)
{
    if (devices[device].blocks.used == 0)
        return;
    struct pml_owned block = take(device, pointer);
    if (block.owner)
        change(device, block.owner->index, -block.size);
}

static bool recording(void)
{
    return atomic_load_explicit(&active, memory_order_acquire) != 0;
}

void pml_holders_freed(int device, const void *pointer, int64_t value)
{
    drop_block(device, pointer);
    see(device, value, NULL);
}

/* A free that the caching allocator puts off until streams are done with the block; its owner holds it until then. */
static void freed_on_streams(int device, const void *pointer, int64_t size)
{
    struct pml_owned block = take(device, pointer);
    int index = block.owner ? block.owner->index : -1;
    bool waits = pml_pending_freed(device, size, index);
    if (block.owner && !(waits && block.size == size))
        change(device, index, -block.size);
}

static void enter(int device, const void *pointer, int64_t size, struct pml_owner *owner)
{
    struct device *dev = &devices[device];
    struct pml_owned before; /* if its end was not seen */
    int index = pml_owner_number(owner);
    if (index < 0 || !cover(dev, index) || !pml_owned_put(&dev->blocks, pointer, size, owner, &before)) {
        pml_pictures_fail(atomic_load_explicit(&active, memory_order_acquire));
        drop_block(device, pointer);
        return;
    }
    if (before.owner)
        change(device, before.owner->index, -before.size);
    else if (dev->blocks.used == 1)
        atomic_fetch_add(&owning, 1);
    change(device, index, size);
}

/* A block of a line's, or of nobody's. */
static void allocated(int device, const void *pointer, int64_t size, struct pml_owner *owner)
{
    if (owner && pointer)
        enter(device, pointer, size, owner);
    else
        drop_block(device, pointer); /* if its end was not seen */
}

void pml_holders_allocated(int device, const void *pointer, int64_t size, int64_t value)
{
    struct pml_owner *owner = recording() ? pml_place_owner() : NULL;
    allocated(device, pointer, size, owner);
    see(device, value, owner);
}

/* ---- accelerators' reports, and locking ---- */

static void count_block(int device, const struct pml_report *report)
{
    if (report->size < 0)
        drop_block(device, report->pointer);
    else
        allocated(device, report->pointer, report->size, report->owner);
}

/* Whether a value this high would be a new maximum. */
static bool rises(uint64_t groups, int device, int64_t value)
{
    for (uint64_t left = groups; left;) {
        const struct pml_peak *peak = next_picture(&left)->device[device];
        if (!peak || peak->peak < value)
            return true;
    }
    return false;
}

static void count_reports(int device, const struct pml_report *report, int count)
{
    int64_t pending = pml_pending_bytes(device);
    struct pml_events sum = pml_backlog_sum(report, count, pending);
    uint64_t groups = pml_holders_groups_open();
    bool each = rises(groups, device, sum.highest[PML_ACTIVE]);
    for (int i = 0; i < count; i++) {
        count_block(device, &report[i]);
        if (each) /* the blocks of this moment may be those of a picture */
            see_in(groups, device, report[i].allocated + pending, report[i].owner);
    }
    for (int i = 0; i < count && groups && !each; i++)
        see_in(groups, device, report[i].allocated + pending, NULL);
    pml_meter_add(device, &sum);
}

void pml_holders_lock(int device)
{
    pthread_mutex_lock(&devices[device].mutex);
    if (pml_backlog_waiting() >> device & 1)
        pml_backlog_take(device, count_reports);
}

void pml_holders_unlock(int device)
{
    pthread_mutex_unlock(&devices[device].mutex);
}

void pml_holders_catch_up(void)
{
    for (uint64_t left = pml_backlog_waiting(); left; left &= left - 1) {
        pml_holders_lock(__builtin_ctzll(left));
        pml_holders_unlock(__builtin_ctzll(left));
    }
}

/* Blocks may wait for streams, and which is told to this thread alone. */
static void count_now(int device, const struct pml_report *report)
{
    pml_holders_lock(device);
    if (report->size < 0)
        freed_on_streams(device, report->pointer, -report->size);
    else
        pml_pending_allocated();
    struct pml_events sum = pml_backlog_sum(report, 1, pml_pending_bytes(device));
    int64_t value = sum.level[PML_ACTIVE];
    pml_meter_add(device, &sum);
    if (report->size < 0)
        see(device, value, NULL);
    else
        pml_holders_allocated(device, report->pointer, report->size, value);
    pml_holders_unlock(device);
}

void pml_holders_reported(int device, const void *pointer, int64_t size, int64_t allocated, int64_t reserved)
{
    if (pml_pending_in_use()) {
        count_now(device, &(struct pml_report){pointer, size, allocated, reserved, NULL});
        return;
    }
    while (!pml_backlog_add(device, pointer, size, allocated, reserved, size > 0 && recording())) {
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

/* What is known of an owner; NULL if it never held anything. The device is locked. */
static struct held *held_by(int device, const struct pml_owner *owner)
{
    int index = atomic_load_explicit(&owner->index, memory_order_relaxed);
    return index >= 0 && index < devices[device].helds ? &devices[device].held[index] : NULL;
}

int64_t pml_holders_begin(int device, const struct pml_owner *owner)
{
    if (!followed(device))
        return -1;
    int index = atomic_load_explicit(&owner->index, memory_order_relaxed);
    if (index < 0 || index >= atomic_load_explicit(&devices[device].helds, memory_order_relaxed))
        return 0;
    pml_holders_lock(device);
    struct held *held = held_by(device, owner);
    int64_t live = held ? held->live : 0;
    if (held)
        held->ended = 0;
    pml_holders_unlock(device);
    return live;
}

void pml_holders_of_line(int device, const struct pml_code *code, int line, int64_t *live, int64_t *ended)
{
    unsigned i = code ? (unsigned)line - (unsigned)code->owner_line : 0;
    const struct pml_owner *owner = code && i < (unsigned)code->owners ? code->owner[i] : NULL;
    *live = followed(device) ? 0 : -1;
    *ended = 0;
    pml_holders_lock(device);
    for (; owner && *live >= 0; owner = owner->next) {
        const struct held *held = held_by(device, owner);
        *live += held ? held->live : 0;
        *ended += held ? held->ended : 0;
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
    if (index >= 0 && index < devices[device].helds)
        change(device, index, -size);
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
    struct device *dev = &devices[device];
    if (dev->blocks.used)
        atomic_fetch_sub(&owning, 1);
    pml_owned_clear(&dev->blocks);
    pml_pending_disown(device);
    for (int i = 0; i < dev->helds; i++)
        if (dev->held[i].live)
            change(device, i, -dev->held[i].live);
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

/* ---- pictures ---- */

static int free_group(void)
{
    for (int group = 0; group < PML_MAX_GROUPS; group++)
        if (!pictures[group])
            return group;
    return -1;
}

void pml_picture_start(struct pml_picture *picture)
{
    if (picture->recorders++ > 0)
        return;
    pml_holders_catch_up();
    if (!picture->since)
        picture->since = ++pml_owners_serial;
    picture->group = free_group();
    if (picture->group < 0) {
        picture->failed = true;
        return;
    }
    atomic_store(&picture->open, 0);
    pictures[picture->group] = picture;
    atomic_fetch_or(&active, UINT64_C(1) << picture->group);
}

/* The holders at a device's peak, in a list of their own. */
static bool list_holders(const struct pml_picture *picture, int device, struct pml_holder_list *list)
{
    const struct pml_peak *peak = picture->device[device];
    const struct device *dev = &devices[device];
    for (int i = 0; i < dev->helds; i++)
        if (!pml_holder_append(list, picture, pml_owner_of(i), pml_picture_bytes(peak, i, dev->held[i].live)))
            return false;
    return true;
}

/* The holders go from the marks to the list, before what they are resolved by changes. */
static void keep(struct pml_picture *picture, int device)
{
    struct pml_peak *peak = picture->device[device];
    if (!peak || peak->kept)
        return;
    struct pml_holder_list list = {.count = 0};
    if (!list_holders(picture, device, &list))
        picture->failed = true;
    free(peak->list.holder);
    peak->list = list;
    peak->kept = true;
}

void pml_picture_stop(struct pml_picture *picture)
{
    if (picture->recorders == 0 || --picture->recorders > 0 || picture->group < 0)
        return;
    uint64_t bit = UINT64_C(1) << picture->group;
    pml_holders_lock_all(); /* no event is under way when the picture leaves */
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        keep(picture, d);
    atomic_fetch_and(&active, ~bit);
    pictures[picture->group] = NULL;
    picture->group = -1;
    pml_holders_unlock_all();
}

void pml_picture_clear(struct pml_picture *picture)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        pml_holders_lock(d);
        pml_picture_forget(picture, d);
        pml_holders_unlock(d);
    }
    pml_failures_clear(picture);
    picture->failed = picture->recorders && picture->group < 0;
}

static void see_all_devices(struct pml_picture *picture)
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
            devices[d].peaks += pml_picture_see(picture, d, value, owner);
        pml_holders_unlock(d);
    }
}

void pml_pictures_open(uint64_t groups)
{
    if (groups)
        pml_holders_catch_up();
    for (uint64_t left = groups; left;) {
        struct pml_picture *picture = next_picture(&left);
        if (picture && atomic_fetch_add(&picture->open, 1) == 0)
            see_all_devices(picture);
    }
}

void pml_pictures_close(uint64_t groups)
{
    if (groups)
        pml_holders_catch_up();
    for (uint64_t left = groups; left;) {
        struct pml_picture *picture = next_picture(&left);
        if (picture)
            atomic_fetch_sub(&picture->open, 1);
    }
}

void pml_pictures_fail(uint64_t groups)
{
    for (uint64_t left = groups; left;) {
        struct pml_picture *picture = next_picture(&left);
        if (picture)
            picture->failed = true;
    }
}

bool pml_picture_copy(struct pml_picture *picture, int device, struct pml_peak *copy)
{
    pml_holders_lock(device);
    const struct pml_peak *peak = picture->device[device];
    bool there = peak && peak->peak >= 0;
    if (there) {
        *copy = *peak;
        copy->mark = NULL;
        copy->list = (struct pml_holder_list){.count = 0};
        there = peak->kept ? pml_holder_list_copy(&copy->list, &peak->list) : list_holders(picture, device, &copy->list);
        picture->failed |= !there;
    }
    pml_holders_unlock(device);
    return there;
}

bool pml_holders_now(int device, const struct pml_picture *picture, struct pml_holder_list *list)
{
    const struct device *dev = &devices[device];
    for (int i = 0; i < dev->helds; i++)
        if (!pml_holder_append(list, picture, pml_owner_of(i), dev->held[i].live))
            return false;
    return true;
}

struct pml_picture *pml_picture_of_group(int group)
{
    return pictures[group];
}

/* ---- going away, forks ---- */

bool pml_holders_unused(int index)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        if (index < devices[d].helds && devices[d].held[index].live)
            return false;
        for (uint64_t left = atomic_load(&active); left;) {
            const struct pml_peak *peak = next_picture(&left)->device[d];
            if (peak && !peak->kept && pml_picture_bytes(peak, index, 0))
                return false;
        }
    }
    return true;
}

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
        pthread_mutex_lock(&devices[d].mutex);
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        pml_backlog_shut(d, count_reports); /* no report names an owner that goes away */
}

void pml_holders_unlock_all(void)
{
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
