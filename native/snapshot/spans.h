/* Memory taken from the device at a moment. */
#ifndef PML_SPANS_H
#define PML_SPANS_H

#include "snapshot/replayed.h"

/* Fill `spans`, by address; its owner drops it. False: no memory. */
bool pml_spans_at(const struct pml_replay *replay, uint32_t moment, pml_memory_spans *spans);
bool pml_spans_add(pml_memory_spans *spans, struct pml_memory_span span);

#endif
