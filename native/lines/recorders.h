/* Recorders: what the hook needs to know of each profiler. Needs the GIL.
 *
 * Ownership: a recorder is its profiler's, which adds it to the list of all recorders and removes it before it is
 * freed.
 */
#ifndef PML_RECORDERS_H
#define PML_RECORDERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pml_recorder {
    struct pml_recorder *next; /* of all recorders */
    _Atomic bool recording;    /* changed with the GIL, read from anywhere */
    bool failed;               /* memory ran out: figures are incomplete */
    bool interrupted;          /* another tracer replaced the hook */
    bool unseen;               /* another tool took the allocators' calls: events were missed */
    uint64_t started;          /* `pml_moment` at the last start: later segments are recorded */
    int64_t sample_runs;       /* statistics are read for this many segments of a line */
    int stat_columns;
    int *stat_column_ids;
    int saved_group;      /* what autograd saves is counted once in a group of profilers; 0: not counted */
    uint64_t group;       /* the bit of the picture that it records for (holders/peak_picture.h); 0: none */
    uint64_t group_since; /* that picture's `since` */
};

void pml_recorders_add(struct pml_recorder *recorder);
void pml_recorders_remove(struct pml_recorder *recorder);

/* Every recorder that records now has lost something. */
void pml_recorders_interrupt(void);
void pml_recorders_fail(void);

#endif
