/* What a line held as its later runs began: the first run in which it took memory is left out, as set-up. Needs the
 * GIL.
 *
 * A history is cut into stretches of equally many samples. When all are full, pairs are merged and the width doubles:
 * memory stays the same however often the line runs, and the whole time is covered. There are two: a sample a run, and
 * a sample a call of the line's function, at the first of its runs in that call.
 */
#ifndef PML_GROWTH_H
#define PML_GROWTH_H

#include "meter/meter.h"

#define PML_STRETCHES 16

struct pml_stretch {
    int64_t samples;
    int64_t runs;
    int64_t held; /* the lowest of its samples */
    int64_t old;  /* the same of what was made before the line's last run */
};

struct pml_history {
    int64_t width; /* samples in a full stretch */
    int closed;    /* full stretches, in an array of their own: most runs touch the open one only */
    struct pml_stretch open;
};

struct pml_growth {
    uint64_t call; /* that the last run belonged to, */
    uint64_t pass; /* and the pass in it (meter.h) */
    int64_t live;  /* when recording stopped: what the line held, */
    int64_t end;   /* and with what went because functions had ended (ledger.h) */
    struct pml_history runs;
    struct pml_history calls;
    struct pml_stretch closed_runs[PML_STRETCHES];
    struct pml_stretch closed_calls[PML_STRETCHES];
};

/* A run begins in which the line holds this much; no number of a call or pass is 0. The same pass: the run goes on. */
void pml_growth_add(struct pml_growth *growth, int64_t held, int64_t old, uint64_t call, uint64_t pass);

#endif
