/* No allocator events on this platform (see events.h): accelerators are measured by PyTorch's statistics alone, and
 * CPU tensors cannot be measured. */
#include "events.h"

int pml_events_install(void)
{
    return 0;
}

bool pml_events_take_released(void)
{
    return false;
}

void pml_events_follow_accelerators(bool follow)
{
}

bool pml_events_seed_cpu(const void *pointer, long long size)
{
    return false;
}
