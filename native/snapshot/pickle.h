/* Reading a pickle of plain data into rows, as a stream.
 *
 * Only the opcodes that make numbers, texts, tuples, lists and dicts are known. A pickle that names a global, calls, or
 * refers to anything outside of itself is refused at that byte; nothing in it is run. Lengths are never believed:
 * memory grows with what has been read, and only while what is read is a snapshot (`too much`).
 *
 * The reader owns everything until `pml_pickle_drop`. One thread, no locks.
 */
#ifndef PML_PICKLE_H
#define PML_PICKLE_H

#include "snapshot/reading.h"

/* False: no memory. */
bool pml_pickle_init(struct pml_pickle *pickle, pml_input_read read, void *arg);
/* Read it all; `root` is then what it holds. */
enum pml_trouble pml_pickle_read(struct pml_pickle *pickle);
/* Free what only reading needs: stack and memo. */
void pml_pickle_finish(struct pml_pickle *pickle);
void pml_pickle_drop(struct pml_pickle *pickle);

#endif
