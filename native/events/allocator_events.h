/* Live events of PyTorch's allocators, without its headers and without linking to it: the calls that its libraries
 * make through their GOT are redirected to functions here, which count the event and then call the original.
 */
#ifndef PML_ALLOCATOR_EVENTS_H
#define PML_ALLOCATOR_EVENTS_H

#include <stdbool.h>

enum pml_event_source {
    PML_EVENTS_CPU = 1,         /* tensor memory of the CPU allocator */
    PML_EVENTS_ACCELERATOR = 2, /* the caching allocator's reports */
    PML_EVENTS_STREAMS = 4,     /* freed blocks that wait for a stream */
};

/* Lead the calls of the libraries that are loaded by now through the meter; may be called again when more are. Returns
 * the sources that are followed (a set of `pml_event_source`). */
int pml_allocator_events_install(void);

/* True once if reserved bytes may have fallen without a report (memory given back to the device). */
bool pml_allocator_events_take_released(void);

/* Follow accelerators by events, or ignore theirs because statistics are read instead. */
void pml_allocator_events_follow_accelerators(bool follow);

/* Whether another tool has led calls that were followed elsewhere: what is allocated meanwhile is not seen. */
bool pml_allocator_events_displaced(void);
/* What was followed until then is not known any more: live blocks, and the CPU's level. Needs the GIL. */
void pml_allocator_events_forget_blocks(void);

/* A block whose allocation was not seen. */
bool pml_allocator_events_seed_cpu(const void *pointer, long long size);

#endif
