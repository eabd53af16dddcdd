/* One thread's stack of open segments, one entry a profiled frame that is running. Needs the GIL.
 *
 * A frame is known by its address alone: it is never dereferenced and no reference is held. An entry exists only from
 * the frame's CALL event to its RETURN event, while the frame cannot go away. Entries are kept for reuse, so that a
 * call allocates nothing once the stack has been as deep before.
 */
#ifndef PML_FRAME_STACK_H
#define PML_FRAME_STACK_H

#include "lines/codes.h"
#include "meter/window.h"

struct pml_frame {
    const void *id; /* NULL: forgotten */
    struct pml_code *code;
    int line;
    uint64_t segment;                    /* `pml_moment` when the open segment began */
    int offset;                          /* in the bytecode, of the last line event */
    bool raised;                         /* the last event was an exception */
    bool sampled;                        /* statistics are read at both ends of the open segment */
    bool entered;                        /* it is on its first line, and no line of it has run yet */
    uint64_t version;                    /* `pml_codes_version` when the next three were looked up */
    uint64_t groups;                     /* the pictures that it counts for */
    struct pml_owner *around;            /* the calling line, for profilers that do not count this code */
    struct pml_owner *owner;             /* the line that runs */
    struct pml_thread_line *thread_line; /* borrowed from the stack */
    struct pml_window window;
};

struct pml_frame_stack {
    struct pml_frame **frame;
    struct pml_thread_line *thread_line; /* this thread's, from the first frame on */
    int depth;
    int capacity;
};

/* The stack of the calling thread, or NULL; only its own thread changes it. */
struct pml_frame_stack *pml_frame_stack_of_thread(void);
void pml_frame_stack_enter_thread(struct pml_frame_stack *stack);

static inline struct pml_frame *pml_frame_stack_top(const struct pml_frame_stack *stack)
{
    return stack->depth ? stack->frame[stack->depth - 1] : NULL;
}

/* The new innermost frame, its window linked in place of the one around it; NULL when memory runs out. Takes over
 * one reference to `code`. */
struct pml_frame *pml_frame_stack_push(struct pml_frame_stack *stack, const void *id, struct pml_code *code);
/* Drop the innermost frame; its peaks pass to the frame around it. */
void pml_frame_stack_pop(struct pml_frame_stack *stack);
/* Index of a frame, or -1. */
int pml_frame_stack_find(const struct pml_frame_stack *stack, const void *id);
void pml_frame_stack_cut(struct pml_frame_stack *stack, int depth);
/* Frames of this code have no more events; those that end the stack are dropped when it is used next. */
void pml_frame_stack_forget(struct pml_frame_stack *stack, const struct pml_code *code);
static inline void pml_frame_stack_drop_forgotten(struct pml_frame_stack *stack)
{
    while (stack->depth && !stack->frame[stack->depth - 1]->id)
        pml_frame_stack_pop(stack);
}
void pml_frame_stack_free(struct pml_frame_stack *stack);

#endif
