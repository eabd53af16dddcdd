/* The clock of segments (see moment.h). */
#include "base/moment.h"

_Atomic uint64_t pml_moment;
