/* One device's trace replayed: every allocation with its size, its beginning and its end, and the memory levels.
 *
 * Moments are numbers of events done: 0 is the start of the recording. What lived before is found from what is there at
 * the end. Reads rows that it does not own; owns what it makes. One thread, no locks.
 */
#ifndef PML_REPLAY_H
#define PML_REPLAY_H

#include "snapshot/contents.h"
#include "snapshot/rows.h"

#define PML_BEFORE 0u
#define PML_NEVER UINT32_MAX
#define PML_NO_ALLOCATION UINT32_MAX

enum {
    PML_SIZE_KNOWN = 1,   /* lives at the end: the size is in the file */
    PML_SIZE_TRACKED = 2, /* in a segment whose gaps are followed (sizes.c) */
    PML_SIZE_GUESSED = 4, /* made before the recording and freed in it, where its size could not be seen */
};

/* 48 bytes; Python reads arrays of them (pytorch_memlab_c/snapshot). */
struct pml_allocation {
    uint64_t address;
    uint64_t size;      /* of the block */
    uint64_t requested; /* by the program */
    uint32_t made;      /* moment; PML_BEFORE: before the recording */
    uint32_t released;  /* when it was freed by the program */
    uint32_t freed;     /* when nothing used it any more, or PML_NEVER */
    uint32_t stack;
    uint32_t setting;
    uint32_t flags;
};

/* Memory taken from the device. */
struct pml_memory_span {
    uint64_t start;
    uint64_t end;
    uint32_t setting;
    uint32_t expandable;
};

typedef PML_VECTOR(struct pml_memory_span) pml_memory_spans;

/* An allocation whose end is not in the trace: it ended by this moment at the latest. */
struct pml_loss {
    uint32_t moment;
    uint32_t allocation;
};

struct pml_memory_levels {
    uint64_t allocated, active, reserved;
};

struct pml_replay {
    const struct pml_rows *rows;
    const struct pml_rules *rules;
    bool host;
    const struct pml_event *events;
    uint32_t count;
    bool has_segments;
    PML_VECTOR(struct pml_allocation) allocations;
    PML_VECTOR(uint32_t) of_event; /* of each event, its allocation, or PML_NO_ALLOCATION */
    pml_memory_spans spans;               /* at the end, by address */
    struct pml_memory_levels at_start;
    struct pml_memory_levels in_file; /* the sums of the file's segments */
    PML_VECTOR(struct pml_loss) lost; /* by moment */
    uint32_t guessed;    /* allocations with PML_SIZE_GUESSED */
    uint32_t unequal;    /* sizes worked out that differ from the file's: none, unless the allocator has changed */
};

/* False: no memory. The rows must stay as they are for as long as the replay is used. */
bool pml_replay_init(struct pml_replay *replay, const struct pml_contents *contents, const struct pml_rows *rows,
                     const struct pml_trace *trace);
void pml_replay_drop(struct pml_replay *replay);

/* The first of `lost` that is not before a moment. */
size_t pml_replay_first_lost(const struct pml_replay *replay, uint32_t moment);

/* allocations.c: from events to allocations. */
bool pml_allocations_find(struct pml_replay *replay, int32_t device);

/* spans.c: memory taken from the device at a moment, by address. `spans` is filled; its owner drops it. */
bool pml_spans_at(const struct pml_replay *replay, uint32_t moment, pml_memory_spans *spans);
bool pml_spans_add(pml_memory_spans *spans, struct pml_memory_span span);

/* sizes.c: the sizes of blocks. */
uint64_t pml_sizes_rounded(const struct pml_rules *rules, uint64_t requested);
bool pml_sizes_find(struct pml_replay *replay);

/* levels.c */
/* How an event changes the levels. */
void pml_replay_step(const struct pml_replay *replay, uint32_t event, struct pml_memory_levels *levels);
void pml_replay_start(struct pml_replay *replay);
struct pml_memory_peak {
    struct pml_memory_levels at; /* then */
    uint32_t moment;      /* the first one with the highest value */
    uint32_t unused;
};
/* The moments of the highest allocated, active and reserved bytes, and the end. */
void pml_replay_peaks(const struct pml_replay *replay, struct pml_memory_peak peaks[4]);

/* A stretch of moments: what there was when most was active, and the extremes. 48 bytes, read by Python. */
struct pml_memory_stretch {
    struct pml_memory_levels at;
    uint64_t least_active;
    uint64_t most_reserved;
    uint32_t moment;
    uint32_t unused;
};
/* Stretch i ends with the moment `ends[i]`, which rise; the first begins with moment 0. */
void pml_replay_stretches(const struct pml_replay *replay, const uint32_t *ends, size_t count,
                          struct pml_memory_stretch *stretches);

/* figures.c: by group of stacks; group 0 has what was there before with no stack. 72 bytes, read by Python. */
struct pml_figures {
    uint64_t allocated; /* bytes allocated in the recording */
    uint64_t times;
    uint64_t peak; /* the most that was active at once */
    uint64_t live; /* active at the end */
    uint64_t live_blocks;
    uint64_t freed; /* allocations with a lifetime */
    int64_t median_life; /* microseconds, or events where there are no times; -1: none */
    uint32_t peak_moment;
    uint32_t unused;
    uint64_t before; /* bytes that were there at the start */
};
/* `groups` has a group for each stack; `figures` has room for `count`. `lows`: for each group in turn, `stretches` values: the
 * least that was active in each of as many stretches (at least one) of equal length. False: no memory. */
bool pml_figures_find(const struct pml_replay *replay, const uint32_t *groups, size_t count, uint32_t stretches,
                      struct pml_figures *figures, uint64_t *lows);

/* expandable.c: the bytes that expandable segments would reserve, at each of `count` rising moments. */
bool pml_expandable_reserved(const struct pml_replay *replay, const uint32_t *moments, size_t count,
                             uint64_t *reserved);

#endif
