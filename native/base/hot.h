/* Hot-path code and data are placed together, and rare code apart: between two events PyTorch's own work evicts the
 * processor's caches, and each cache line that has to be fetched again costs more than the work done with it.
 */
#ifndef PML_HOT_H
#define PML_HOT_H

/* Functions. */
#define PML_HOT __attribute__((hot))
#define PML_COLD __attribute__((cold, noinline))

/* Small variables: those that threads only read, and those that change at each line. */
#ifdef __ELF__
#define PML_READ_MOSTLY __attribute__((section("pml_read_mostly")))
#define PML_WRITTEN_OFTEN __attribute__((section("pml_written_often")))
#else
#define PML_READ_MOSTLY
#define PML_WRITTEN_OFTEN
#endif

#endif
