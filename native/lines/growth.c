/* A line's later runs (see growth.h). */
#include "lines/growth.h"

static inline void keep_lower(struct pml_stretch *into, const struct pml_stretch *more)
{
    if (into->low > more->low)
        into->low = more->low;
    if (into->level_low > more->level_low)
        into->level_low = more->level_low;
    if (into->reserved_low > more->reserved_low)
        into->reserved_low = more->reserved_low;
}

static inline void merge(struct pml_stretch *into, const struct pml_stretch *more)
{
    keep_lower(into, more);
    into->runs += more->runs;
    into->net += more->net;
    into->reserved_net += more->reserved_net;
}

/* All stretches are full: each two become one. */
PML_COLD static void halve(struct pml_history *history, struct pml_stretch *closed)
{
    for (int i = 0; i < PML_STRETCHES / 2; i++) {
        closed[i] = closed[2 * i];
        merge(&closed[i], &closed[2 * i + 1]);
    }
    history->closed = PML_STRETCHES / 2;
    history->width *= 2;
}

PML_COLD static void begin(struct pml_history *history, struct pml_stretch *closed, const struct pml_stretch *run)
{
    if (history->width == 0)
        history->width = 1;
    else
        closed[history->closed++] = history->open;
    if (history->closed == PML_STRETCHES)
        halve(history, closed);
    history->open = *run;
}

static inline void append(struct pml_history *history, struct pml_stretch *closed, const struct pml_stretch *run)
{
    if (history->open.runs < history->width) {
        merge(&history->open, run);
        return;
    }
    struct pml_stretch kept = *run; /* so that the run itself need not lie in memory */
    begin(history, closed, &kept);
}

/* A further run in the same outermost call: the call's level is that of its first one. */
static inline void extend(struct pml_history *history, const struct pml_stretch *run)
{
    history->open.net += run->net;
    history->open.reserved_net += run->reserved_net;
}

PML_HOT void pml_growth_add(struct pml_growth *growth, bool first, const struct pml_span *span, uint64_t call)
{
    const struct pml_levels *end = pml_window_span_end(span);
    struct pml_stretch run = {
        .runs = 1,
        .low = span->live >= 0 ? span->live : span->start.level[PML_ALLOCATED],
        .level_low = span->start.level[PML_ALLOCATED],
        .reserved_low = end->level[PML_RESERVED],
        .net = end->level[PML_ALLOCATED] - span->start.level[PML_ALLOCATED],
        .reserved_net = end->level[PML_RESERVED] - span->start.level[PML_RESERVED],
    };
    int64_t freed = end->gross - end->level[PML_ALLOCATED];
    if (!first && growth->freed_gap < freed - growth->freed)
        growth->freed_gap = freed - growth->freed;
    growth->freed = freed;
    growth->gross = end->gross;
    if (first)
        growth->gross_first = end->gross;
    growth->live = span->live >= 0 && (first || growth->live);
    append(&growth->runs, growth->closed_runs, &run);
    if (first || growth->call != call)
        append(&growth->calls, growth->closed_calls, &run);
    else
        extend(&growth->calls, &run);
    growth->call = call;
}
