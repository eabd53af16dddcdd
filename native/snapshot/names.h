/* The strings of a snapshot, each kept once; and the names that mean something, whose numbers are known beforehand.
 *
 * Owns the text. Numbers never change; pointers to text do until the reading ends. No locks.
 */
#ifndef PML_NAMES_H
#define PML_NAMES_H

#include "snapshot/index.h"
#include "snapshot/vector.h"

/* The keys of PyTorch's snapshots, then the values that are told apart. */
#define PML_NAMES_KEYS(X) \
    X(ACTION, "action") \
    X(ADDR, "addr") \
    X(SIZE, "size") \
    X(STREAM, "stream") \
    X(TIME, "time_us") \
    X(FRAMES, "frames") \
    X(CONTEXT, "compile_context") \
    X(METADATA, "user_metadata") \
    X(POOL, "pool_id") \
    X(DEVICE_FREE, "device_free") \
    X(NAME, "name") \
    X(FILENAME, "filename") \
    X(LINE, "line") \
    X(ADDRESS, "address") \
    X(STATE, "state") \
    X(REQUESTED, "requested_size") \
    X(TOTAL, "total_size") \
    X(ALLOCATED, "allocated_size") \
    X(ACTIVE, "active_size") \
    X(DEVICE, "device") \
    X(BLOCKS, "blocks") \
    X(SEGMENT_TYPE, "segment_type") \
    X(SEGMENT_POOL, "segment_pool_id") \
    X(EXPANDABLE, "is_expandable") \
    X(HISTORY, "history") \
    X(VERSION, "version")
#define PML_NAMES_VALUES(X) \
    X(V_ALLOC, "alloc") \
    X(V_FREE_REQUESTED, "free_requested") \
    X(V_FREE_COMPLETED, "free_completed") \
    X(V_FREE, "free") \
    X(V_SEGMENT_ALLOC, "segment_alloc") \
    X(V_SEGMENT_FREE, "segment_free") \
    X(V_SEGMENT_MAP, "segment_map") \
    X(V_SEGMENT_UNMAP, "segment_unmap") \
    X(V_SNAPSHOT, "snapshot") \
    X(V_OOM, "oom") \
    X(V_USER_DEFINED, "user_defined") \
    X(V_ACTIVE, "active_allocated") \
    X(V_PENDING, "active_pending_free") \
    X(V_AWAITING, "active_awaiting_free") \
    X(V_INACTIVE, "inactive") \
    X(V_LARGE, "large") \
    X(V_SMALL, "small")

#define PML_NAMES_ENUM(name, text) PML_NAME_##name,
enum pml_name {
    PML_NAMES_KEYS(PML_NAMES_ENUM) PML_NAMES_KEY_COUNT,
    PML_NAMES_LAST_KEY = PML_NAMES_KEY_COUNT - 1,
    PML_NAMES_VALUES(PML_NAMES_ENUM) PML_NAME_EMPTY,
    PML_NAMES_KNOWN
};

struct pml_names_entry {
    size_t start;
    uint32_t length;
};

struct pml_names {
    PML_VECTOR(char) text;
    PML_VECTOR(struct pml_names_entry) entries;
    struct pml_index index;
};

/* False: no memory. */
bool pml_names_init(struct pml_names *names);
/* The number of a string, or PML_INDEX_NONE without memory. */
uint32_t pml_names_intern(struct pml_names *names, const char *text, size_t length);
/* Its text, which is no C string: `length` bytes. */
const char *pml_names_text(const struct pml_names *names, uint32_t number, size_t *length);
/* Whether it is that C string. */
bool pml_names_is(const struct pml_names *names, uint32_t number, const char *text);
void pml_names_drop(struct pml_names *names);

#endif
