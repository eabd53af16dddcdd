/* A pickle while it is read: its bytes, the stack and the memo, and the rows that it becomes. See pickle.h. */
#ifndef PML_READING_H
#define PML_READING_H

#include "snapshot/input.h"
#include "snapshot/rows.h"
#include "snapshot/values.h"

enum pml_trouble {
    PML_FINE,
    PML_TROUBLE_EMPTY,     /* no byte */
    PML_TROUBLE_CUT_OFF,   /* the file ends too early */
    PML_TROUBLE_NO_PICKLE, /* not a pickle of protocol 2 to 5 */
    PML_TROUBLE_GLOBAL,    /* names a global: `detail` */
    PML_TROUBLE_NOT_PLAIN, /* an opcode that is no plain data: `detail` */
    PML_TROUBLE_DAMAGED,   /* opcodes that do not fit together */
    PML_TROUBLE_TOO_MUCH,  /* far more of what is no snapshot than any snapshot has */
    PML_TROUBLE_NO_MEMORY,
    PML_TROUBLE_READ, /* the callback failed */
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

#endif
