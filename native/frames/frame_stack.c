/* One thread's stack of open segments (see frame_stack.h). */
#include "frames/frame_stack.h"

#include <stdlib.h>

#include "base/moment.h"
#include "holders/picture_recording.h"
#include "holders/thread_line.h"

static _Thread_local struct pml_frame_stack *of_thread;

struct pml_frame_stack *pml_frame_stack_of_thread(void)
{
    return of_thread;
}

void pml_frame_stack_enter_thread(struct pml_frame_stack *stack)
{
    of_thread = stack;
}

static bool reserve(struct pml_frame_stack *stack)
{
    if (stack->depth < stack->capacity)
        return true;
    int capacity = stack->capacity ? stack->capacity * 2 : 8;
    struct pml_frame **grown = realloc(stack->frame, (size_t)capacity * sizeof *grown);
    if (!grown)
        return false;
    for (int i = stack->capacity; i < capacity; i++)
        grown[i] = NULL;
    stack->frame = grown;
    stack->capacity = capacity;
    return true;
}

struct pml_frame *pml_frame_stack_push(struct pml_frame_stack *stack, const void *id, struct pml_code *code)
{
    if (!reserve(stack))
        return NULL;
    struct pml_frame *frame = stack->frame[stack->depth];
    if (!frame) {
        frame = calloc(1, sizeof *frame);
        if (!frame)
            return NULL;
        stack->frame[stack->depth] = frame;
    }
    struct pml_frame *outer = pml_frame_stack_top(stack);
    if (outer)
        pml_window_unlink(&outer->window);
    pml_window_link(&frame->window);
    stack->depth++;
    pml_frame_stack_enter_thread(stack);
    frame->window.call = frame->window.pass = pml_moment_next();
    frame->offset = -1;
    frame->window.outer_call = outer ? outer->window.outer_call : frame->window.call;
    if (!stack->thread_line)
        stack->thread_line = pml_thread_line_retain();
    frame->id = id;
    frame->code = code;
    frame->version = 0;
    frame->groups = 0;
    frame->owner = NULL;
    frame->thread_line = stack->thread_line;
    frame->raised = false;
    return frame;
}

void pml_frame_stack_pop(struct pml_frame_stack *stack)
{
    struct pml_frame *frame = stack->frame[--stack->depth];
    struct pml_frame *outer = pml_frame_stack_top(stack);
    pml_window_unlink(&frame->window);
    if (outer) {
        pml_window_absorb(&outer->window, &frame->window);
        pml_window_link(&outer->window);
    }
    pml_stat_columns_stop(&frame->window.columns);
    pml_thread_line_set(stack->thread_line, outer ? outer->owner : NULL);
    pml_picture_recording_close(frame->groups);
    frame->groups = 0;
    pml_codes_release(frame->code);
    frame->code = NULL;
}

int pml_frame_stack_find(const struct pml_frame_stack *stack, const void *id)
{
    for (int i = stack->depth - 1; i >= 0; i--)
        if (stack->frame[i]->id == id)
            return i;
    return -1;
}

void pml_frame_stack_cut(struct pml_frame_stack *stack, int depth)
{
    while (stack->depth > depth)
        pml_frame_stack_pop(stack);
}

void pml_frame_stack_forget(struct pml_frame_stack *stack, const struct pml_code *code)
{
    for (int i = 0; i < stack->depth; i++)
        if (stack->frame[i]->code == code)
            stack->frame[i]->id = NULL;
}

void pml_frame_stack_free(struct pml_frame_stack *stack)
{
    pml_frame_stack_cut(stack, 0);
    for (int i = 0; i < stack->capacity && stack->frame[i]; i++) {
        pml_stat_columns_free(&stack->frame[i]->window.columns);
        free(stack->frame[i]);
    }
    free(stack->frame);
    if (of_thread == stack)
        of_thread = NULL;
    pml_thread_line_release(stack->thread_line);
    *stack = (struct pml_frame_stack){.frame = NULL};
}
