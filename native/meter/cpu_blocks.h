/* Live blocks of the CPU allocator: pointer to size.
 *
 * Threads: every function may be called from any thread, with or without the GIL. Each shard has its own mutex, a
 * leaf: nothing is called while one is held except the C library's own memory functions.
 */
#ifndef PML_CPU_BLOCKS_H
#define PML_CPU_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enter a block of at least one byte; a pointer already there (its end was not seen) gets the new size, and `*before`
 * the old one, else 0. False when memory runs out. */
bool pml_cpu_blocks_put(const void *pointer, size_t size, size_t *before);
/* Enter a block only if it is not known yet; true if it was entered. */
bool pml_cpu_blocks_seed(const void *pointer, size_t size);
/* Remove a block. Its size, or 0 when it is not known. */
size_t pml_cpu_blocks_take(const void *pointer);
/* A block's size, or 0 when it is not known. */
size_t pml_cpu_blocks_size(const void *pointer);
size_t pml_cpu_blocks_count(void);
void pml_cpu_blocks_clear(void);

/* Around a fork: hold every shard, so that the child's copy is whole. */
void pml_cpu_blocks_lock_all(void);
void pml_cpu_blocks_unlock_all(void);

#endif
