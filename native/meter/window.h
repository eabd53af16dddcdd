/* Windows: how high each device was inside a stretch of time.
 *
 * Ownership: a window belongs to whoever opened it, and is unlinked before it is freed.
 * Threads:   needs the GIL. An accelerator is folded with its device locked (holders/ledger.h).
 */
#ifndef PML_WINDOW_H
#define PML_WINDOW_H

#include "meter/meter.h"
#include "meter/stat_columns.h"

/* One device inside one window. Where nothing happened since its start, its end has not been read and is the start. */
struct pml_span {
    int64_t peak[PML_METRICS]; /* the highest so far */
    struct pml_levels start;
    struct pml_levels end;
    uint64_t ticks; /* of the device, at the start */
    uint64_t end_ticks;
    int64_t held; /* bytes that the line which runs held at its start (ledger.h), or -1; not the meter's */
    int64_t old;  /* those of them that it made before its last run */
};

static inline const struct pml_levels *pml_window_span_end(const struct pml_span *span)
{
    return span->end_ticks == span->ticks ? &span->start : &span->end;
}

/* A stretch of time with its own running maximum. Linked into the list of open windows while it is the innermost
 * of its thread, or while it is independent. */
struct pml_window {
    struct pml_window *next;
    struct pml_window *prev;
    uint64_t ticks; /* of all devices, at the start */
    uint64_t end_ticks;
    uint64_t outer_call; /* which outermost profiled call it belongs to: the moment when that began (frame_stack.c), */
    uint64_t call;       /* and which call of its own function */
    uint64_t pass; /* changes as that jumps back: a line that is seen again before then goes on with a statement */
    int devices;
    struct pml_column_values columns;
    struct pml_span span[PML_MAX_DEVICES];
};

/* The list of open windows. */
extern struct pml_window pml_window_list;

/* Give the device's peaks since its last fold to every open window. An accelerator is locked. */
void pml_window_fold_device(int device);
/* Give a statistics reading of one device to every open window that tracks statistics columns. */
void pml_window_fold_columns(int device);

/* Fold before each of these. */
void pml_window_link(struct pml_window *window);
void pml_window_unlink(struct pml_window *window);
/* Restart from the present levels. */
void pml_window_restart(struct pml_window *window);
/* Read the ends of its spans: what happens later belongs to the next window. */
void pml_window_read_end(struct pml_window *window);
/* Restart from where it ended. */
void pml_window_go_on(struct pml_window *window);
/* An inner window's peaks are also those of the window around it. */
void pml_window_absorb(struct pml_window *outer, const struct pml_window *inner);
/* Unlink all open windows: for the child of a fork, whose other threads are gone. They keep what they have. */
void pml_window_forget_all(void);

#endif
