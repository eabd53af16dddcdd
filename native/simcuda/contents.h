/* See contents.c. */
#ifndef SIM_CONTENTS_H
#define SIM_CONTENTS_H

#include "base/torch_abi.h"

/* Stands in for c10::reportMemoryUsageToProfiler in libc10_cuda. */
void sim_contents_report(void *block, int64_t size, size_t allocated, size_t reserved, struct pml_torch_device device);

/* What is called afterwards. */
void sim_contents_chain(pml_torch_report *next);

#endif
