/* Around a fork: all locks are held, so that the child's copy of what they protect is whole. For pthread_atfork.
 *
 * Threads: any, with or without the GIL.
 */
#ifndef PML_FORKS_H
#define PML_FORKS_H

void pml_forks_before(void);
/* In the parent and in the child. */
void pml_forks_after(void);

#endif
