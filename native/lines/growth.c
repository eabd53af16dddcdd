/* What a line held as its later runs began (see growth.h). */
#include "lines/growth.h"

static inline void keep_lower(int64_t *into, int64_t value)
{
    if (*into > value)
        *into = value;
}

static inline void merge(struct pml_stretch *into, const struct pml_stretch *more)
{
    into->samples += more->samples;
    into->runs += more->runs;
    keep_lower(&into->held, more->held);
    keep_lower(&into->old, more->old);
}

/* All stretches are full: each two become one. */
static void halve(struct pml_history *history, struct pml_stretch *closed)
{
    for (int i = 0; i < PML_STRETCHES / 2; i++) {
        closed[i] = closed[2 * i];
        merge(&closed[i], &closed[2 * i + 1]);
    }
    history->closed = PML_STRETCHES / 2;
    history->width *= 2;
}

static void begin(struct pml_history *history, struct pml_stretch *closed, const struct pml_stretch *sample)
{
    if (history->width == 0)
        history->width = 1;
    else
        closed[history->closed++] = history->open;
    if (history->closed == PML_STRETCHES)
        halve(history, closed);
    history->open = *sample;
}

static inline void append(struct pml_history *history, struct pml_stretch *closed, const struct pml_stretch *sample)
{
    if (history->open.samples < history->width)
        merge(&history->open, sample);
    else
        begin(history, closed, sample);
}

void pml_growth_add(struct pml_growth *growth, int64_t held, int64_t old, uint64_t call, uint64_t pass)
{
    if (growth->pass == pass)
        return;
    const struct pml_stretch sample = {.samples = 1, .runs = 1, .held = held, .old = old};
    append(&growth->runs, growth->closed_runs, &sample);
    if (growth->call == call)
        growth->calls.open.runs++;
    else
        append(&growth->calls, growth->closed_calls, &sample);
    growth->call = call;
    growth->pass = pass;
}
