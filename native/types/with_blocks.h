/* The types Switch and WindowBlock: bases of Python classes, what `with` enters and leaves in C. Needs the GIL. */
#ifndef PML_WITH_BLOCKS_H
#define PML_WITH_BLOCKS_H

#include "cpython/compat.h"

extern PyType_Spec pml_with_blocks_switch_spec;
extern PyType_Spec pml_with_blocks_window_spec;

#endif
