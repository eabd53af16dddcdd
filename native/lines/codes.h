/* Which profilers count which code object: a map from the code object's address. Needs the GIL.
 *
 * Code objects are told apart by identity; two with equal contents are two. The map knows nothing of Python: whoever
 * subscribes keeps the code object alive until it unsubscribes.
 */
#ifndef PML_CODES_H
#define PML_CODES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lines/line_table.h"

struct pml_owner;
struct pml_peak_picture;

/* One profiler's state as the hook sees it. */
struct pml_recorder {
    struct pml_peak_picture *picture; /* who holds the peak, for this profiler or its group; or NULL */
    _Atomic bool recording; /* changed with the GIL, read from anywhere */
    bool failed;      /* memory ran out: figures are incomplete */
    bool interrupted; /* another tracer took the hook's place */
    uint64_t started; /* `pml_recorders_starts` at the last start */
    int64_t sample_runs; /* read statistics for this many segments of a line */
    int stat_columns;
    int *stat_column_ids;
    int saved_group; /* what autograd saves is counted once in a group of profilers; 0: not counted */
};

/* One profiler's counters for one code object. */
struct pml_subscriber {
    struct pml_recorder *recorder;
    struct pml_line_table *table;
    uint64_t calls;
    struct pml_saved_table *saved; /* saved_tables.h, or NULL */
};

struct pml_code {
    const void *key;
    int references;
    int subscribers;
    struct pml_subscriber **subscriber;
    uint64_t since;          /* the highest `since` of those pictures */
    _Atomic uint64_t groups; /* a bit for each picture that its profilers record for (owners.h) */
    int owner_line;          /* of owner[0] */
    int owners;
    struct pml_owner **owner; /* by line */
};

struct pml_code *pml_codes_find(const void *key);
/* False when memory runs out. The table stays the subscriber's. */
bool pml_codes_subscribe(const void *key, struct pml_subscriber *subscriber);
void pml_codes_unsubscribe(const void *key, struct pml_subscriber *subscriber);
/* Which profilers record has changed: each code object's groups anew. */
void pml_codes_regroup(void);

static inline struct pml_code *pml_codes_retain(struct pml_code *code)
{
    code->references++;
    return code;
}

void pml_codes_release(struct pml_code *code);

#endif
