/* A line's later runs (see growth.h). */
#include "growth.h"

static void keep_lower(struct pml_stretch *into, const struct pml_stretch *more)
{
    if (into->low > more->low)
        into->low = more->low;
    if (into->level_low > more->level_low)
        into->level_low = more->level_low;
    if (into->reserved_low > more->reserved_low)
        into->reserved_low = more->reserved_low;
}

static void merge(struct pml_stretch *into, const struct pml_stretch *more)
{
    keep_lower(into, more);
    into->runs += more->runs;
    into->net += more->net;
    into->reserved_net += more->reserved_net;
}

static void halve(struct pml_history *history)
{
    for (int i = 0; i < PML_STRETCHES / 2; i++) {
        history->stretch[i] = history->stretch[2 * i];
        merge(&history->stretch[i], &history->stretch[2 * i + 1]);
    }
    history->used = PML_STRETCHES / 2;
    history->width *= 2;
}

static void append(struct pml_history *history, const struct pml_stretch *run)
{
    if (history->used && history->stretch[history->used - 1].runs < history->width) {
        merge(&history->stretch[history->used - 1], run);
        return;
    }
    if (history->used == PML_STRETCHES)
        halve(history);
    if (history->width == 0)
        history->width = 1;
    history->stretch[history->used++] = *run;
}

/* A further run in the same outermost call: the call's level is that of its first one. */
static void extend(struct pml_history *history, const struct pml_stretch *run)
{
    struct pml_stretch *last = &history->stretch[history->used - 1];
    last->net += run->net;
    last->reserved_net += run->reserved_net;
}

void pml_growth_add(struct pml_growth *growth, bool first, const struct pml_span *span, const struct pml_levels *end,
                    uint64_t epoch)
{
    struct pml_stretch run = {
        .runs = 1,
        .low = span->live_known ? span->live : span->start[PML_ALLOCATED],
        .level_low = span->start[PML_ALLOCATED],
        .reserved_low = end->level[PML_RESERVED],
        .net = end->level[PML_ALLOCATED] - span->start[PML_ALLOCATED],
        .reserved_net = end->level[PML_RESERVED] - span->start[PML_RESERVED],
    };
    int64_t freed = end->gross - end->level[PML_ALLOCATED];
    if (first || growth->net_max < run.net)
        growth->net_max = run.net;
    if (!first && growth->freed_gap < freed - growth->freed)
        growth->freed_gap = freed - growth->freed;
    growth->freed = freed;
    growth->gross = end->gross;
    if (first)
        growth->gross_first = end->gross;
    growth->live = span->live_known && (first || growth->live);
    append(&growth->runs, &run);
    if (first || growth->epoch != epoch)
        append(&growth->calls, &run);
    else
        extend(&growth->calls, &run);
    growth->epoch = epoch;
}
