/* What a memory snapshot holds, as compact columns: events, blocks, segments.
 *
 * Filled while the file is read, then only read. Owned by whoever has the struct. No locks.
 */
#ifndef PML_ROWS_H
#define PML_ROWS_H

#include "snapshot/index.h"
#include "snapshot/names.h"
#include "snapshot/stacks.h"
#include "snapshot/vector.h"

enum pml_action {
    PML_ALLOC,
    PML_FREE_REQUESTED,
    PML_FREE_COMPLETED,
    PML_SEGMENT_ALLOC,
    PML_SEGMENT_FREE,
    PML_SEGMENT_MAP,
    PML_SEGMENT_UNMAP,
    PML_OOM,
    PML_SNAPSHOT_TAKEN,
    PML_OTHER_ACTION,
    PML_ACTIONS,
};

/* Where an allocation belongs besides its device. `number` of stream and pool: as in the file. */
struct pml_setting {
    int64_t stream;
    int64_t pool[2];
    uint32_t context, metadata; /* names */
};

#define PML_SETTING_BITS 24

/* One entry of a trace. 32 bytes, for there may be tens of millions. */
struct pml_event {
    uint64_t address; /* of an oom event: free bytes of the device */
    uint64_t size;
    int64_t time; /* microseconds; 0: not in the file */
    uint32_t stack;
    uint32_t packed; /* action << PML_SETTING_BITS | setting */
};

static inline enum pml_action pml_rows_action_of(const struct pml_event *event)
{
    return (enum pml_action)(event->packed >> PML_SETTING_BITS);
}

static inline uint32_t pml_rows_setting_of(const struct pml_event *event)
{
    return event->packed & ((1u << PML_SETTING_BITS) - 1);
}

enum pml_block_state { PML_BLOCK_FREE, PML_BLOCK_LIVE, PML_BLOCK_PENDING };

struct pml_block {
    uint64_t address; /* 0: the file does not say; it follows the block before it */
    uint64_t size;
    uint64_t requested;
    uint32_t stack;
    uint32_t state;
};

struct pml_segment {
    uint64_t address;
    uint64_t size;
    uint64_t first_block;
    uint32_t blocks;
    uint32_t stack;
    uint32_t setting;
    int32_t device; /* -1: the host */
    uint32_t large;
    uint32_t expandable;
};

struct pml_rows {
    struct pml_names names;
    struct pml_stacks stacks;
    PML_VECTOR(struct pml_event) events;
    PML_VECTOR(struct pml_block) blocks;
    PML_VECTOR(struct pml_segment) segments;
    PML_VECTOR(struct pml_setting) settings;
    struct pml_index setting_index;
    uint32_t last_setting;
    PML_VECTOR(uint32_t) unknown; /* names: keys and actions that this reader does not know */
    bool timed;                   /* an event has a time */
};

/* False: no memory. */
bool pml_rows_init(struct pml_rows *rows);
/* The number of an equal setting, or PML_INDEX_NONE: no memory. */
uint32_t pml_rows_setting(struct pml_rows *rows, const struct pml_setting *setting);
/* Remember, once, a name that is not known. */
bool pml_rows_note_unknown(struct pml_rows *rows, uint32_t name);
void pml_rows_drop(struct pml_rows *rows);

#endif
