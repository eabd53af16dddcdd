/* What autograd keeps for backward, by the line that was running when it was saved.
 *
 * While this is followed, every block of tensor memory is known by its address: when it came, and which lines it was
 * counted for. A storage that is saved counts once in each group of profilers, for the innermost profiled line of the
 * thread, until its memory is freed.
 *
 * Threads: blocks come and go, and tensors are saved, on any thread, with or without the GIL. One mutex, taken before
 * all other locks of the engine (docs/threads.md). What changes who is subscribed to a code object holds it too
 * (`pml_saved_tables_lock`), since a line is looked up without the GIL. While a tensor is counted the gate of the CPU's
 * report queue is held as well: the line of another thread that waits for backward then stays.
 */
#ifndef PML_SAVED_TABLES_H
#define PML_SAVED_TABLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frames/frame_stack.h"

enum pml_saved_kind {
    PML_SAVED_ACTIVATION, /* made by the profiled functions while they ran */
    PML_SAVED_PARAMETER,  /* a leaf that requires grad, or a view of one */
    PML_SAVED_INPUT,      /* was there before the outermost profiled call */
    PML_SAVED_BACKWARD,   /* saved while backward ran: by recomputation in a checkpoint, or for a second derivative */
    PML_SAVED_KINDS
};

/* One line on one device, in bytes. */
struct pml_saved_figures {
    int64_t now[PML_SAVED_KINDS];  /* saved, and not freed yet */
    int64_t peak[PML_SAVED_KINDS]; /* the highest of that */
    int64_t total;                 /* activations, summed over all runs */
    uint64_t run;
    int64_t run_now;
    int64_t run_max; /* activations of one run of the line */
    uint64_t call;   /* the outermost one in which `hooks_now` was given */
    int64_t hooks_now;
    int64_t hooks_max; /* given to saved-tensor hooks of the program, in one outermost call */
};

struct pml_saved_table {
    int first_line;
    int lines;
    int group;
    int references;      /* the profiler's, and one for each block counted here */
    uint64_t generation; /* a clear begins another */
    bool failed;
    struct pml_saved_figures *figures[PML_MAX_DEVICES];
};

/* A tensor that autograd saves, as far as it concerns memory. */
struct pml_saved_tensor {
    const void *storage; /* where its storage's memory begins */
    int64_t bytes;       /* of the whole storage; used for blocks whose allocation was not seen */
    int device;          /* a meter slot, likewise */
    bool hooked;         /* the program's own hooks take it over */
    bool backward;       /* backward is running on this thread */
    const void *handle;  /* for `pml_saved_tables_ask_with` */
};

extern _Atomic bool pml_saved_tables_following;
/* What says whether a tensor is a parameter or a view of one. Called with no lock held, once for each block at most. */
void pml_saved_tables_ask_with(bool (*is_parameter)(const void *handle));

void pml_saved_tables_follow(bool follow);
void pml_saved_tables_allocated(int device, const void *pointer, int64_t size);
void pml_saved_tables_freed(const void *pointer);
void pml_saved_tables_note(const struct pml_saved_tensor *tensor);

struct pml_saved_table *pml_saved_tables_new(int first_line, int last_line, int group);
void pml_saved_tables_release(struct pml_saved_table *table);
void pml_saved_tables_clear(struct pml_saved_table *table);
/* A copy of one line's figures; false where there are none. */
bool pml_saved_tables_read(struct pml_saved_table *table, int line, int device, struct pml_saved_figures *copy);

void pml_saved_tables_lock(void);
void pml_saved_tables_unlock(void);
/* Whether memory ran out for something that may belong to this table. */
bool pml_saved_tables_incomplete(const struct pml_saved_table *table);
/* Blocks that are known now. */
int64_t pml_saved_tables_blocks(void);

#endif
