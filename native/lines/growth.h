/* How a line's memory went over its later runs: all but the first, which is set-up. Needs the GIL.
 *
 * A history is cut into stretches of equally many runs. When all are full, pairs are merged and the width doubles:
 * memory stays the same however often the line runs, and the whole time is covered. Runs are kept twice: one by one,
 * and one sample for each outermost profiled call, so that what rises inside a call and is given back by its end can be
 * told from what stays.
 */
#ifndef PML_GROWTH_H
#define PML_GROWTH_H

#include "meter/window.h"

#define PML_STRETCHES 16

struct pml_stretch {
    int64_t runs;
    int64_t low;          /* the lowest value at the start of a run: bytes that the line holds, or else the level */
    int64_t level_low;    /* the same of the device's allocated level */
    int64_t reserved_low; /* the lowest of its reserved bytes, at the end of a run */
    int64_t net;          /* bytes allocated minus freed in its runs */
    int64_t reserved_net;
};

struct pml_history {
    int64_t width; /* runs in a full stretch */
    int closed;    /* full stretches, in an array of their own: most runs touch the open one only */
    struct pml_stretch open;
};

struct pml_growth {
    bool live;           /* `low` is what the line holds itself */
    uint64_t call;      /* the outermost call that the last run belonged to */
    int64_t gross;       /* bytes allocated on the device until the end of the last run */
    int64_t gross_first; /* and of the first of the later runs */
    int64_t freed;       /* bytes freed on the device until the end of the last run */
    int64_t freed_gap;   /* the most that was freed from one run's end to the next one's */
    struct pml_history runs;
    struct pml_history calls;
    struct pml_stretch closed_runs[PML_STRETCHES];
    struct pml_stretch closed_calls[PML_STRETCHES];
};

/* `first` in `add`: the first of the later runs. */
void pml_growth_add(struct pml_growth *growth, bool first, const struct pml_span *span, uint64_t call);

#endif
