/* What a replay of one device's trace has found: every allocation with its size, its beginning and its end.
 *
 * Moments are numbers of events done: 0 is the start of the recording. What lived before is found from what is there at
 * the end. Refers to rows that it does not own; owns the rest (replay.h fills and frees it). One thread, no locks.
 */
#ifndef PML_REPLAYED_H
#define PML_REPLAYED_H

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
    pml_memory_spans spans;        /* at the end, by address */
    struct pml_memory_levels at_start;
    struct pml_memory_levels in_file; /* the sums of the file's segments */
    PML_VECTOR(struct pml_loss) lost; /* by moment */
    uint32_t guessed;                 /* allocations with PML_SIZE_GUESSED */
    uint32_t unequal; /* sizes worked out that differ from the file's: none, unless the allocator has changed */
};

/* The first of `lost` that is not before a moment. */
static inline size_t pml_replayed_first_lost(const struct pml_replay *replay, uint32_t moment)
{
    size_t low = 0, high = replay->lost.used;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (replay->lost.items[middle].moment >= moment)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

#endif
