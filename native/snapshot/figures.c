/* What each group of stacks (a line, a function) has allocated, held at most, and keeps. See figures.h. */
#include "snapshot/figures.h"

#include <stdlib.h>
#include <string.h>

struct adding {
    const struct pml_replay *replay;
    const uint32_t *groups;
    size_t count;
    struct pml_figures *figures;
    uint64_t *active; /* by group, now */
    uint64_t *lows;
    uint32_t stretches;
    uint32_t stretch; /* that runs now */
};

/* Group 0 is what was there before the recording, where nobody knows who made it. */
static uint32_t group_of(const struct adding *adding, const struct pml_allocation *allocation)
{
    uint32_t group = allocation->made == PML_BEFORE && !allocation->stack ? 0 : adding->groups[allocation->stack];
    return group < adding->count ? group : 0;
}

static void add(struct adding *adding, uint32_t group, uint64_t size, uint32_t moment)
{
    uint64_t now = adding->active[group] += size;
    if (now > adding->figures[group].peak) {
        adding->figures[group].peak = now;
        adding->figures[group].peak_moment = moment;
    }
}

static void take(struct adding *adding, uint32_t group, uint64_t size)
{
    uint64_t now = adding->active[group] -= size;
    uint64_t *low = &adding->lows[group * adding->stretches + adding->stretch];
    if (now < *low)
        *low = now;
}

/* A stretch begins: the least so far is what there is. */
static void begin_stretch(struct adding *adding, uint32_t stretch)
{
    adding->stretch = stretch;
    for (size_t group = 0; group < adding->count; group++)
        adding->lows[group * adding->stretches + stretch] = adding->active[group];
}

static void add_those_before(struct adding *adding)
{
    for (size_t i = 0; i < adding->replay->allocations.used; i++) {
        const struct pml_allocation *allocation = &adding->replay->allocations.items[i];
        uint32_t group = group_of(adding, allocation);
        if (allocation->made == PML_BEFORE) {
            add(adding, group, allocation->size, 0);
            adding->figures[group].before += allocation->size;
        }
    }
}

static void take_lost(struct adding *adding, uint32_t moment)
{
    const struct pml_replay *replay = adding->replay;
    size_t i = pml_replayed_first_lost(replay, moment);
    for (; i < replay->lost.used && replay->lost.items[i].moment == moment; i++) {
        const struct pml_allocation *allocation = &replay->allocations.items[replay->lost.items[i].allocation];
        take(adding, group_of(adding, allocation), allocation->size);
    }
}

static void add_event(struct adding *adding, uint32_t event)
{
    if (adding->replay->lost.used)
        take_lost(adding, event + 1);
    uint32_t number = adding->replay->of_event.items[event];
    if (number == PML_NO_ALLOCATION)
        return;
    const struct pml_allocation *allocation = &adding->replay->allocations.items[number];
    uint32_t group = group_of(adding, allocation);
    if (allocation->made == event + 1) {
        add(adding, group, allocation->size, event + 1);
        adding->figures[group].allocated += allocation->size;
        adding->figures[group].times++;
    } else if (allocation->freed == event + 1) {
        take(adding, group, allocation->size);
    }
}

static void add_events(struct adding *adding)
{
    uint32_t event = 0;
    for (uint32_t stretch = 0; stretch < adding->stretches; stretch++) {
        begin_stretch(adding, stretch);
        uint32_t end = (uint32_t)((uint64_t)adding->replay->count * (stretch + 1) / adding->stretches);
        while (event < end)
            add_event(adding, event++);
    }
}

/* ---- lifetimes ---- */

static int64_t lifetime(const struct pml_replay *replay, const struct pml_allocation *allocation)
{
    if (!replay->rows->timed)
        return (int64_t)allocation->freed - allocation->made;
    return replay->events[allocation->freed - 1].time - replay->events[allocation->made - 1].time;
}

static bool has_lifetime(const struct pml_allocation *allocation)
{
    return allocation->made != PML_BEFORE && allocation->freed != PML_NEVER && allocation->freed > allocation->made;
}

/* The middle value; the order of the values changes. */
static int64_t median(int64_t *values, size_t count)
{
    size_t low = 0, high = count - 1, middle = (count - 1) / 2;
    while (low < high) {
        int64_t pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                int64_t value = values[i];
                values[i++] = values[j];
                values[j] = value;
                if (!j--)
                    break;
            }
        }
        if (middle <= j && j < count)
            high = j;
        else if (middle >= i)
            low = i;
        else
            break;
    }
    return values[middle];
}

/* All lifetimes, group by group, and then the median of each. */
static bool find_medians(struct adding *adding)
{
    const struct pml_replay *replay = adding->replay;
    size_t *next = calloc(adding->count + 1, sizeof *next);
    int64_t *lives = malloc((replay->allocations.used + 1) * sizeof *lives);
    for (size_t i = 0; next && lives && i < replay->allocations.used; i++)
        if (has_lifetime(&replay->allocations.items[i]))
            next[group_of(adding, &replay->allocations.items[i]) + 1]++;
    for (size_t i = 1; next && lives && i <= adding->count; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; next && lives && i < replay->allocations.used; i++)
        if (has_lifetime(&replay->allocations.items[i]))
            lives[next[group_of(adding, &replay->allocations.items[i])]++] =
                lifetime(replay, &replay->allocations.items[i]);
    size_t start = 0;
    for (size_t i = 0; next && lives && i < adding->count; start = next[i++]) {
        adding->figures[i].freed = next[i] - start;
        adding->figures[i].median_life = next[i] > start ? median(lives + start, next[i] - start) : -1;
    }
    bool fine = next && lives;
    free(next);
    free(lives);
    return fine;
}

static void find_live(struct adding *adding)
{
    for (size_t i = 0; i < adding->replay->allocations.used; i++) {
        const struct pml_allocation *allocation = &adding->replay->allocations.items[i];
        if (allocation->freed != PML_NEVER)
            continue;
        struct pml_figures *figures = &adding->figures[group_of(adding, allocation)];
        figures->live += allocation->size;
        figures->live_blocks++;
    }
}

bool pml_figures_find(const struct pml_replay *replay, const uint32_t *groups, size_t count, uint32_t stretches,
                      struct pml_figures *figures, uint64_t *lows)
{
    struct adding adding = {.replay = replay,
                            .groups = groups,
                            .count = count,
                            .figures = figures,
                            .lows = lows,
                            .stretches = stretches,
                            .active = calloc(count + 1, sizeof *adding.active)};
    if (!adding.active)
        return false;
    memset(figures, 0, count * sizeof *figures);
    add_those_before(&adding);
    add_events(&adding);
    find_live(&adding);
    free(adding.active);
    return find_medians(&adding);
}
