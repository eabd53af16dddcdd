/* No allocator events on this platform (see allocator_events.h): accelerators are measured by PyTorch's statistics
 * alone, and CPU tensors cannot be measured. */
#include "events/allocator_events.h"

int pml_allocator_events_install(void)
{
    return 0;
}

bool pml_allocator_events_take_released(void)
{
    return false;
}

void pml_allocator_events_follow_accelerators(bool follow)
{
}

bool pml_allocator_events_seed_cpu(const void *pointer, long long size)
{
    return false;
}

bool pml_allocator_events_displaced(void)
{
    return false;
}

void pml_allocator_events_forget_blocks(void)
{
}
