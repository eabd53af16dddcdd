/* All locks of the engine at once, in their order (base/lock_order.h): held around a fork, so that the child's copy of
 * what they protect is whole.
 *
 * Threads: any, with or without the GIL.
 */
#ifndef PML_ALL_LOCKS_H
#define PML_ALL_LOCKS_H

void pml_all_locks_take(void);
void pml_all_locks_give(void);

#endif
