/* The type Tracer: one profiler's code objects and counters. Needs the GIL. */
#ifndef PML_TRACER_H
#define PML_TRACER_H

#include "cpython/state.h"
#include "lines/codes.h"
#include "types/holders_type.h"

struct PmlTracer {
    PyObject_HEAD struct pml_state *state;
    PmlTracer *next;
    struct pml_recorder recorder;
    PmlHolders *holders; /* owned; or NULL */
    PyObject *codes;     /* list, in the order added: keeps them alive */
    struct pml_subscriber **subscriber;
    int entries; /* how many enable it */
};

extern PyType_Spec pml_tracer_spec;
/* It records from the first `enter` to the last `leave`. */
void pml_tracer_enter(PmlTracer *tracer);
void pml_tracer_leave(PmlTracer *tracer);
/* In the child of a fork: nothing is recorded, and all counters are zero. */
void pml_tracer_after_fork(struct pml_state *state);

#endif
