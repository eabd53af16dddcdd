/* Replaying the trace of one device: allocations, their sizes, and the levels at the start. */
#ifndef PML_REPLAY_H
#define PML_REPLAY_H

#include "snapshot/replayed.h"

/* False: no memory. The rows must stay as they are for as long as the replay is used. */
bool pml_replay_init(struct pml_replay *replay, const struct pml_contents *contents, const struct pml_rows *rows,
                     const struct pml_trace *trace);
void pml_replay_drop(struct pml_replay *replay);

#endif
