/* Reading a pickle of plain data into rows, as a stream.
 *
 * Only the opcodes that make numbers, texts, tuples, lists and dicts are known. A pickle that names a global, calls, or
 * refers to anything outside of itself is refused at that byte; nothing in it is run. Lengths are never believed: memory
 * grows with what has been read, and only while what is read is a snapshot (`too much`).
 *
 * The reader owns everything until `pml_pickle_drop`. One thread, no locks.
 */
#ifndef PML_PICKLE_H
#define PML_PICKLE_H

#include "snapshot/input.h"
#include "snapshot/rows.h"
#include "snapshot/values.h"

enum pml_trouble {
    PML_FINE,
    PML_TROUBLE_EMPTY,      /* no byte */
    PML_TROUBLE_CUT_OFF,    /* the file ends too early */
    PML_TROUBLE_NO_PICKLE,  /* not a pickle of protocol 2 to 5 */
    PML_TROUBLE_GLOBAL,     /* names a global: `detail` */
    PML_TROUBLE_NOT_PLAIN,  /* an opcode that is no plain data: `detail` */
    PML_TROUBLE_DAMAGED,    /* opcodes that do not fit together */
    PML_TROUBLE_TOO_MUCH,   /* far more of what is no snapshot than any snapshot has */
    PML_TROUBLE_NO_MEMORY,
    PML_TROUBLE_READ,       /* the callback failed */
};

struct pml_pickle {
    struct pml_input input;
    struct pml_values values;
    struct pml_rows rows;
    PML_VECTOR(pml_value) stack;
    PML_VECTOR(pml_value) memo;
    PML_VECTOR(uint32_t) marks;
    PML_VECTOR(char) text; /* a string that is longer than the buffer */
    size_t checked;        /* opcodes until the next look at how much there is */
    pml_value root;
    enum pml_trouble trouble;
    uint64_t offset; /* where the trouble is */
    char detail[128];
};

/* False: no memory. */
bool pml_pickle_init(struct pml_pickle *pickle, pml_input_read read, void *arg);
/* Read it all; `root` is then what it holds. */
enum pml_trouble pml_pickle_read(struct pml_pickle *pickle);
/* Free what only reading needs: stack and memo. */
void pml_pickle_finish(struct pml_pickle *pickle);
void pml_pickle_drop(struct pml_pickle *pickle);

/* shapes.c: what dicts and lists become. */
enum pml_trouble pml_shape_pairs(struct pml_pickle *pickle, pml_value dict, const pml_value *pairs, size_t count);
enum pml_trouble pml_shape_append(struct pml_pickle *pickle, pml_value list, const pml_value *items, size_t count);
enum pml_trouble pml_shape_tuple(struct pml_pickle *pickle, const pml_value *items, size_t count, pml_value *tuple);

#endif
