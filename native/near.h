/* What is used at each event and line lies together, and what seldom happens out of its way: PyTorch's own work in between
 * takes the processor's caches, and each line of them that has to be fetched anew costs more than what is done with it.
 */
#ifndef PML_NEAR_H
#define PML_NEAR_H

/* Functions. */
#define PML_OFTEN __attribute__((hot))
#define PML_SELDOM __attribute__((cold, noinline))

/* Small variables: those that threads only read, and those that change at each line. */
#ifdef __ELF__
#define PML_READ_OFTEN __attribute__((section("pml_read_often")))
#define PML_CHANGED_OFTEN __attribute__((section("pml_changed_often")))
#else
#define PML_READ_OFTEN
#define PML_CHANGED_OFTEN
#endif

#endif
