/* Stands for libc10.so: the CPU allocator. */
#include <stdlib.h>

#include "runtime.h"

void *c10_allocate(size_t size)
{
    void *pointer = NULL;
    return posix_memalign(&pointer, 64, size) == 0 ? pointer : NULL;
}

void c10_free(void *pointer)
{
    free(pointer);
}
