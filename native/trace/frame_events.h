/* What each event of a frame does to the open segments of its thread, whoever reports the event. Needs the GIL.
 *
 * Frames are never kept, only compared by address. Nothing here raises, creates a Python object or calls Python, except
 * where PyTorch's statistics must be read (statistics.c).
 */
#ifndef PML_FRAME_EVENTS_H
#define PML_FRAME_EVENTS_H

#include "cpython/state.h"
#include "frames/frame_stack.h"

/* A frame begins, or a generator resumes. */
void pml_frame_events_call(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame);
/* A line begins; 0: the frame's own. */
void pml_frame_events_line(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame, int line);
void pml_frame_events_exception(struct pml_frame_stack *stack, PyFrameObject *frame, PyObject *raised);
/* A frame returns, yields, or is left by an exception. */
void pml_frame_events_return(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame);

#endif
