/* Segments: from one event of a frame to its next. Opening, closing, and giving each closed one to the profilers that
 * count its code. Needs the GIL. The caller folds the meter before each call.
 */
#ifndef PML_SEGMENT_H
#define PML_SEGMENT_H

#include "frames/frame_stack.h"

/* The device that a segment is charged to when it ends. */
extern int pml_segment_target_device;

/* True if some profiler wants statistics for the next segment of this line. */
bool pml_segment_wants_sample(const struct pml_code *code, int line);

/* `outer` is the frame around, or NULL; it gets what the frame's window knows of statistics columns and loses now. */
void pml_segment_open(struct pml_frame *frame, int line, bool sampled, struct pml_frame *outer);
/* Record the open segment, and open that of the frame's next line at the same levels. */
void pml_segment_next(struct pml_frame *frame, int line, bool sampled, struct pml_frame *outer);
/* Record the open segment. The frame keeps its window. */
void pml_segment_close(struct pml_frame *frame);
/* Which profilers record has changed: look up again which pictures the frame counts for. */
void pml_segment_recount(struct pml_frame *frame);
void pml_segment_hit(const struct pml_frame *frame);
/* Record what is open in every frame of a stack for a profiler that stops now. */
void pml_segment_flush(struct pml_frame_stack *stack, const struct pml_recorder *recorder);

#endif
