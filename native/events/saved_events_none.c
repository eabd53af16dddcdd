/* What autograd saves cannot be seen on this platform (see saved_events.h). */
#include "events/saved_events.h"

bool pml_saved_events_learn(const struct pml_saved_sample *samples, int count)
{
    return false;
}

bool pml_saved_events_learn_wrapper(const void *wrapper, const void *inside)
{
    return false;
}

bool pml_saved_events_hooks_are_set(void)
{
    return false;
}

bool pml_saved_events_install(void)
{
    return false;
}
