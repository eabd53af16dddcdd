/* Events of profiled frames (see frame_events.h). */
#include "trace/frame_events.h"

#include "base/moment.h"
#include "frames/segment.h"
#include "holders/ledger.h"
#include "trace/statistics.h"

static struct pml_frame *frame_around(const struct pml_frame_stack *stack)
{
    return stack->depth > 1 ? stack->frame[stack->depth - 2] : NULL;
}

/* The part of a line that the frame is in, or NULL. */
static const struct pml_line_part *part_of(const struct pml_code *code, PyFrameObject *frame)
{
    int at = code->parts ? pml_compat_offset(frame) : 0;
    for (int i = 0; i < code->parts; i++)
        if (at >= code->part[i].start && at < code->part[i].end)
            return &code->part[i];
    return NULL;
}

void pml_frame_events_line(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame, int line)
{
    struct pml_frame *top = pml_frame_stack_top(stack);
    if (!top || top->id != frame)
        return;
    const struct pml_line_part *part = part_of(top->code, frame);
    if (part || line == 0)
        line = part ? part->line : PyFrame_GetLineNumber(frame);
    if (line <= 0)
        return;
    bool again = (top->raised || part) && line == top->line;
    bool first = top->entered && line == top->line; /* a function of one line: its entry is no run of that line */
    top->raised = top->entered = false;
    if (first)
        pml_segment_hit(top);
    if (again || first)
        return;
    int offset = pml_compat_offset(frame);
    bool round_again = PML_COMPAT_INLINES_COMPREHENSIONS && line == top->line;
    if (offset <= top->offset && !round_again)
        top->window.pass = pml_moment_next();
    top->offset = offset;
    bool sample = pml_segment_wants_sample(top->code, line);
    pml_statistics_sync(state, sample || top->sampled);
    pml_segment_next(top, line, sample, frame_around(stack));
}

/* Python 3.13 shows the line once more when an exception is thrown into an `await` or `yield from`: no new run of it.
 */
void pml_frame_events_exception(struct pml_frame_stack *stack, PyFrameObject *frame, PyObject *raised)
{
    if (raised && PyErr_GivenExceptionMatches(raised, PyExc_StopIteration))
        return; /* a `yield from` or `await` is over: the next round of a loop on this line is a run */
    struct pml_frame *top = pml_frame_stack_top(stack);
    if (top && top->id == frame)
        top->raised = true;
}

static void count_call(const struct pml_code *code)
{
    for (int i = 0; i < code->subscribers; i++)
        if (code->subscriber[i]->recorder->recording)
            code->subscriber[i]->calls++;
}

static void fail_recorders(const struct pml_code *code)
{
    for (int i = 0; i < code->subscribers; i++)
        code->subscriber[i]->recorder->failed = true;
}

/* A frame that begins, or a generator that resumes: its first segment belongs to its present line. NULL: no memory. */
static struct pml_frame *open_frame(struct pml_state *state, struct pml_frame_stack *stack, const void *frame,
                                    struct pml_code *code, int line)
{
    bool sample = pml_segment_wants_sample(code, line);
    pml_statistics_sync(state, sample);
    struct pml_frame *outer = pml_frame_stack_top(stack);
    struct pml_frame *top = pml_frame_stack_push(stack, frame, code);
    if (!top) {
        fail_recorders(code);
        return NULL;
    }
    pml_codes_retain(code);
    pml_segment_open(top, line, sample, outer);
    return top;
}

static void call_recorded(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame,
                          struct pml_code *code, int first_line)
{
    int stale = pml_frame_stack_find(stack, frame);
    if (stale >= 0) /* its RETURN was lost */
        pml_frame_stack_cut(stack, stale);
    const struct pml_line_part *part = part_of(code, frame); /* where a coroutine goes on */
    int line = part && part->line ? part->line : PyFrame_GetLineNumber(frame);
    if (line <= 0) /* a module begins before its first line */
        line = first_line;
    bool entered = line == first_line;
    if (entered)
        count_call(code);
    struct pml_frame *top = open_frame(state, stack, frame, code, line);
    if (top)
        top->entered = entered;
}

void pml_frame_events_call(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame)
{
    PyCodeObject *object = PyFrame_GetCode(frame);
    struct pml_code *code = pml_codes_find(object);
    if (code && pml_codes_recorded(code))
        call_recorded(state, stack, frame, code, object->co_firstlineno);
    Py_DECREF(object); /* the frame holds it */
}

void pml_frame_events_return(struct pml_state *state, struct pml_frame_stack *stack, PyFrameObject *frame)
{
    struct pml_frame *top = pml_frame_stack_top(stack);
    if (!top) {
        pml_ledger_set_phase(PML_ENDING);
        return;
    }
    if (top->id != frame) {
        int index = pml_frame_stack_find(stack, frame);
        if (index < 0)
            return;
        pml_frame_stack_cut(stack, index + 1);
        top = pml_frame_stack_top(stack);
    }
    pml_statistics_sync(state, top->sampled);
    pml_segment_close(top);
    pml_frame_stack_pop(stack);
    pml_ledger_set_phase(PML_ENDING);
}
