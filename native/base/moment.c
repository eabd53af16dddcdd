/* The clock of segments (see moment.h). */
#include "base/moment.h"

#include "base/hot.h"

PML_WRITTEN_OFTEN _Atomic uint64_t pml_moment;
