/* See contents.c. */
#ifndef PML_SIMCUDA_CONTENTS_H
#define PML_SIMCUDA_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int8_t type, index;
} pml_c10_device; /* c10::Device, by value in one integer register */
typedef void (*pml_report_function)(void *block, int64_t size, size_t allocated, size_t reserved,
                                    pml_c10_device device);

#define PML_REPORT_SYMBOL "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

/* Stands in for c10::reportMemoryUsageToProfiler in libc10_cuda. */
void pml_contents_report(void *block, int64_t size, size_t allocated, size_t reserved, pml_c10_device device);

/* What was called before, and is called afterwards. */
void pml_contents_chain(pml_report_function next);

#endif
