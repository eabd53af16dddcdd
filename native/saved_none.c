/* What autograd saves cannot be seen on this platform (see saved_events.h). */
#include "saved_events.h"

bool pml_saved_learn(const struct pml_saved_sample *samples, int count)
{
    return false;
}

bool pml_saved_hooks_are_set(void)
{
    return false;
}

bool pml_saved_install(void)
{
    return false;
}
