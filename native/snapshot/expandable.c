/* What expandable segments would have reserved: the trace's allocations once more, in one growing range of addresses
 * for each pool and stream, as PyTorch's allocator places them there.
 *
 * The smallest free piece that is large enough is taken; failing that the free end, which grows by whole pages. Where
 * the program gave cached memory back (a segment is freed in the trace), the free pages at the ends are given back;
 * holes before them stay. What was there before the recording is placed by address, side by side. So the figure is an
 * upper bound for programs that empty their cache, and exact for others that are recorded from their start.
 */
#include "snapshot/expandable.h"

#include <stdlib.h>

#include "snapshot/addresses.h"
#include "snapshot/gapset.h"
#include "snapshot/sizes.h"

#define SMALL (UINT64_C(1) << 20)
#define SMALL_PAGE (UINT64_C(2) << 20)
#define LARGE_PAGE (UINT64_C(20) << 20)
#define NOWHERE UINT64_MAX

/* One range of addresses, from 0. */
struct arena {
    int64_t stream, pool[2];
    uint64_t page;
    uint64_t mapped; /* bytes, whole pages */
    uint64_t tail;   /* from here to `mapped` it is free */
    struct pml_gapset by_size;
    struct pml_addresses by_start; /* free pieces before the tail: to their size */
    struct pml_addresses by_end;
};

struct world {
    const struct pml_replay *replay;
    PML_VECTOR(struct arena) arenas;
    uint64_t *places; /* by allocation */
    uint32_t *homes;  /* by allocation: its arena */
    uint64_t reserved;
};

static bool fits(const struct arena *arena, const struct pml_setting *setting, uint64_t page)
{
    return arena->page == page && arena->stream == setting->stream && arena->pool[0] == setting->pool[0] &&
           arena->pool[1] == setting->pool[1];
}

static bool arena_of(struct world *world, const struct pml_allocation *allocation, uint64_t size, uint32_t *number)
{
    const struct pml_setting *setting = &world->replay->rows->settings.items[allocation->setting];
    uint64_t page = size <= SMALL ? SMALL_PAGE : LARGE_PAGE;
    for (*number = 0; *number < world->arenas.used; ++*number)
        if (fits(&world->arenas.items[*number], setting, page))
            return true;
    struct arena arena = {.stream = setting->stream, .pool = {setting->pool[0], setting->pool[1]}, .page = page};
    return PML_PUSH(&world->arenas, arena);
}

static bool add_piece(struct arena *arena, uint64_t start, uint64_t size)
{
    return !size || (pml_gapset_add(&arena->by_size, start, size) && pml_addresses_set(&arena->by_start, start, size) &&
                     pml_addresses_set(&arena->by_end, start + size, size));
}

static void take_piece(struct arena *arena, uint64_t start, uint64_t size)
{
    uint64_t same;
    pml_gapset_remove(&arena->by_size, start, size);
    pml_addresses_take(&arena->by_start, start, &same);
    pml_addresses_take(&arena->by_end, start + size, &same);
}

static void set_mapped(struct world *world, struct arena *arena, uint64_t bytes)
{
    uint64_t pages = bytes / arena->page + (bytes % arena->page != 0);
    world->reserved += pages * arena->page - arena->mapped;
    arena->mapped = pages * arena->page;
}

static bool place(struct world *world, uint32_t number)
{
    const struct pml_allocation *allocation = &world->replay->allocations.items[number];
    uint64_t start, found, size = pml_sizes_rounded(world->replay->rules, allocation->requested);
    uint32_t home;
    if (!arena_of(world, allocation, size, &home))
        return false;
    struct arena *arena = &world->arenas.items[home];
    world->homes[number] = home;
    if (pml_gapset_find(&arena->by_size, size, &start, &found)) {
        take_piece(arena, start, found);
        world->places[number] = start;
        return add_piece(arena, start + size, found - size);
    }
    if (size > UINT64_MAX / 2 - arena->tail) { /* no real size */
        world->places[number] = NOWHERE;
        return true;
    }
    world->places[number] = arena->tail;
    arena->tail += size;
    if (arena->tail > arena->mapped)
        set_mapped(world, arena, arena->tail);
    return true;
}

static bool give_back(struct world *world, uint32_t number)
{
    if (world->places[number] == NOWHERE)
        return true;
    const struct pml_allocation *allocation = &world->replay->allocations.items[number];
    struct arena *arena = &world->arenas.items[world->homes[number]];
    uint64_t start = world->places[number], size = pml_sizes_rounded(world->replay->rules, allocation->requested),
             other;
    if (pml_addresses_get(&arena->by_end, start, &other)) {
        take_piece(arena, start - other, other);
        start -= other;
        size += other;
    }
    if (pml_addresses_get(&arena->by_start, start + size, &other)) {
        take_piece(arena, start + size, other);
        size += other;
    }
    if (start + size != arena->tail)
        return add_piece(arena, start, size);
    arena->tail = start;
    return true;
}

static void empty_cache(struct world *world)
{
    for (size_t i = 0; i < world->arenas.used; i++)
        set_mapped(world, &world->arenas.items[i], world->arenas.items[i].tail);
}

/* What ended without an event. What was made by the last event and is lost at once need not be given back. */
static bool give_back_lost(struct world *world, uint32_t moment)
{
    const struct pml_replay *replay = world->replay;
    size_t lost = pml_replayed_first_lost(replay, moment);
    for (; lost < replay->lost.used && replay->lost.items[lost].moment == moment; lost++) {
        uint32_t number = replay->lost.items[lost].allocation;
        if (replay->allocations.items[number].made < moment && !give_back(world, number))
            return false;
    }
    return true;
}

static bool follow_event(struct world *world, uint32_t event)
{
    const struct pml_replay *replay = world->replay;
    uint32_t number = replay->of_event.items[event];
    if (replay->lost.used && !give_back_lost(world, event + 1))
        return false;
    if (number == PML_NO_ALLOCATION) {
        enum pml_action action = pml_rows_action_of(&replay->events[event]);
        if (action == PML_SEGMENT_FREE || action == PML_SEGMENT_UNMAP)
            empty_cache(world);
        return true;
    }
    const struct pml_allocation *allocation = &replay->allocations.items[number];
    if (allocation->made == event + 1)
        return place(world, number);
    return allocation->freed != event + 1 || give_back(world, number);
}

struct before {
    uint64_t address;
    uint32_t number;
};

static int by_address(const void *a, const void *b)
{
    uint64_t left = ((const struct before *)a)->address, right = ((const struct before *)b)->address;
    return left < right ? -1 : left > right;
}

static bool place_those_before(struct world *world)
{
    PML_VECTOR(struct before) before = {0};
    bool fine = true;
    for (size_t i = 0; fine && i < world->replay->allocations.used; i++)
        if (world->replay->allocations.items[i].made == PML_BEFORE)
            fine = PML_PUSH(&before, ((struct before){world->replay->allocations.items[i].address, (uint32_t)i}));
    if (before.used)
        qsort(before.items, before.used, sizeof *before.items, by_address);
    for (size_t i = 0; fine && i < before.used; i++)
        fine = place(world, before.items[i].number);
    PML_DROP(&before);
    return fine;
}

static void drop(struct world *world)
{
    for (size_t i = 0; i < world->arenas.used; i++) {
        pml_gapset_drop(&world->arenas.items[i].by_size);
        pml_addresses_drop(&world->arenas.items[i].by_start);
        pml_addresses_drop(&world->arenas.items[i].by_end);
    }
    PML_DROP(&world->arenas);
    free(world->places);
    free(world->homes);
}

bool pml_expandable_reserved(const struct pml_replay *replay, const uint32_t *moments, size_t count, uint64_t *reserved)
{
    size_t most = replay->allocations.used + 1;
    struct world world = {
        .replay = replay, .places = malloc(most * sizeof *world.places), .homes = malloc(most * sizeof *world.homes)};
    bool fine = world.places && world.homes && place_those_before(&world);
    uint32_t event = 0;
    for (size_t i = 0; fine && i < count; i++) {
        while (fine && event < moments[i] && event < replay->count)
            fine = follow_event(&world, event++);
        reserved[i] = world.reserved;
    }
    drop(&world);
    return fine;
}
