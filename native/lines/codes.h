/* Which profilers count which code object: a map from the code object's address. Needs the GIL.
 *
 * Code objects are distinguished by identity; two with equal contents are two. The map knows nothing of Python: a
 * subscriber keeps the code object alive until it unsubscribes.
 */
#ifndef PML_CODES_H
#define PML_CODES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lines/line_table.h"
#include "lines/recorders.h"

struct pml_owner;

/* Instructions of a code object, from the byte offset `start` up to `end`, that run as a part of a line whatever line
 * they are on; or of none, if it is 0. */
struct pml_line_part {
    int start;
    int end;
    int line;
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
    bool watched; /* it has events of sys.monitoring */
    int subscribers;
    struct pml_subscriber **subscriber;
    uint64_t since;          /* the highest `since` of those pictures */
    _Atomic uint64_t groups; /* a bit for each picture that its profilers record for */
    int parts;
    struct pml_line_part *part; /* ascending */
    int owner_line;             /* of owner[0] */
    int owners;
    struct pml_owner **owner;          /* by line (holders/charge.h) */
    void (*forget)(struct pml_code *); /* called before it is freed; set by who gave it owners */
};

/* Changes whenever it may change which profilers count a code object: frames then look again. */
extern uint64_t pml_codes_version;

struct pml_code *pml_codes_find(const void *key);
/* False when memory runs out. The table stays the subscriber's. */
bool pml_codes_subscribe(const void *key, struct pml_subscriber *subscriber);
void pml_codes_unsubscribe(const void *key, struct pml_subscriber *subscriber);
/* The code object's parts of lines, copied; they are always the same. False when memory runs out. */
bool pml_codes_set_parts(const void *key, const struct pml_line_part *part, int parts);
/* Which profilers record has changed: recompute each code object's groups. */
void pml_codes_regroup(void);

/* True if any profiler of this code records now. */
bool pml_codes_recorded(const struct pml_code *code);

static inline uint64_t pml_codes_groups(const struct pml_code *code)
{
    return atomic_load_explicit(&code->groups, memory_order_relaxed);
}

static inline struct pml_code *pml_codes_retain(struct pml_code *code)
{
    code->references++;
    return code;
}

void pml_codes_release(struct pml_code *code);

#endif
