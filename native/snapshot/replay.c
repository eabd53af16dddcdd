/* Replaying the trace of one device. See replay.h. */
#include "snapshot/replay.h"

#include "snapshot/allocations.h"
#include "snapshot/levels.h"
#include "snapshot/sizes.h"

bool pml_replay_init(struct pml_replay *replay, const struct pml_contents *contents, const struct pml_rows *rows,
                     const struct pml_trace *trace)
{
    *replay = (struct pml_replay){.rows = rows,
                                  .rules = &contents->rules,
                                  .host = trace->device == PML_HOST,
                                  .events = rows->events.items + trace->first,
                                  .count = (uint32_t)trace->count,
                                  .has_segments = contents->has_segments};
    if (trace->count >= PML_NEVER - 1)
        return false;
    if (!pml_allocations_find(replay, trace->device) || !pml_sizes_find(replay))
        return false;
    pml_levels_start(replay);
    return true;
}

void pml_replay_drop(struct pml_replay *replay)
{
    PML_DROP(&replay->allocations);
    PML_DROP(&replay->of_event);
    PML_DROP(&replay->spans);
    PML_DROP(&replay->lost);
}
