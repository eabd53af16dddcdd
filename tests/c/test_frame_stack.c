/* Stacks of open segments: whose peak is whose, deep recursion, lost returns, references, several stacks at once. */
#include "check.h"
#include "fresh.h"
#include "frames/frame_stack.h"

static char id[16];
static struct pml_code code;

/* What the hook does at a CALL. */
static struct pml_frame *call(struct pml_frame_stack *stack, const void *frame_id)
{
    fold();
    struct pml_frame *frame = pml_frame_stack_push(stack, frame_id, pml_codes_retain(&code));
    pml_window_restart(&frame->window);
    return frame;
}

/* What the hook does at a RETURN; the frame's peak on the CPU. */
static int64_t leave(struct pml_frame_stack *stack)
{
    fold();
    int64_t peak = pml_frame_stack_top(stack)->window.span[PML_CPU].peak[PML_ALLOCATED];
    pml_frame_stack_pop(stack);
    return peak;
}

static void start_test(void)
{
    fresh_meter();
    code = (struct pml_code){.references = 1};
}

static void end_test(struct pml_frame_stack *stack)
{
    pml_frame_stack_free(stack);
    CHECK_INT(stack->depth, 0);
    CHECK_INT(stack->capacity, 0);
    CHECK_INT(code.references, 1);
    CHECK_INT(linked_windows(), 0);
}

static void an_empty_stack_has_no_top(void)
{
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    CHECK_POINTER(pml_frame_stack_top(&stack), NULL);
    CHECK_INT(pml_frame_stack_find(&stack, &id[0]), -1);
    pml_frame_stack_cut(&stack, 0);
    end_test(&stack);
}

static void only_the_innermost_window_of_a_stack_is_linked(void)
{
    /* GIVEN */
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    /* WHEN, THEN */
    for (int i = 0; i < 5; i++) {
        struct pml_frame *frame = call(&stack, &id[i]);
        CHECK_INT(linked_windows(), 1);
        CHECK_POINTER(pml_window_list.next, &frame->window);
        CHECK_POINTER(pml_frame_stack_top(&stack), frame);
        CHECK_POINTER(frame->id, &id[i]);
        CHECK_POINTER(frame->code, &code);
    }
    CHECK_INT(code.references, 6);
    leave(&stack);
    CHECK_INT(linked_windows(), 1);
    CHECK_POINTER(pml_window_list.next, &pml_frame_stack_top(&stack)->window);
    end_test(&stack);
}

static void a_peak_in_an_inner_frame_is_the_outer_ones_too(void)
{
    /* GIVEN three frames */
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    for (int i = 0; i < 3; i++)
        call(&stack, &id[i]);
    /* WHEN the innermost allocates and frees */
    pml_meter_move(PML_CPU, 100);
    pml_meter_move(PML_CPU, -100);
    /* THEN */
    for (int i = 0; i < 3; i++)
        CHECK_INT(leave(&stack), 100);
    end_test(&stack);
}

static void a_peak_of_the_outer_frame_is_not_the_inner_ones(void)
{
    /* GIVEN a peak before the call */
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    call(&stack, &id[0]);
    pml_meter_move(PML_CPU, 100);
    pml_meter_move(PML_CPU, -90);
    /* WHEN */
    call(&stack, &id[1]);
    /* THEN */
    CHECK_INT(leave(&stack), 10);
    pml_meter_move(PML_CPU, 30);
    CHECK_INT(leave(&stack), 100);
    end_test(&stack);
}

static void a_device_that_appears_in_an_inner_frame_is_the_outer_ones_too(void)
{
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    struct pml_frame *outer = call(&stack, &id[0]);
    call(&stack, &id[1]);
    report(2, 64, 64, 64);
    leave(&stack);
    CHECK_INT(outer->window.devices, 3);
    CHECK_INT(outer->window.span[2].peak[PML_ALLOCATED], 64);
    CHECK_INT(outer->window.span[2].start.level[PML_ALLOCATED], 0);
    end_test(&stack);
}

static void stacks_of_two_threads_both_see_an_event(void)
{
    /* GIVEN */
    start_test();
    struct pml_frame_stack first = {.depth = 0}, second = {.depth = 0};
    call(&first, &id[0]);
    call(&second, &id[1]);
    call(&first, &id[2]);
    CHECK_INT(linked_windows(), 2);
    /* WHEN */
    pml_meter_move(PML_CPU, 70);
    CHECK_INT(leave(&second), 70);
    pml_meter_move(PML_CPU, -70);
    /* THEN */
    CHECK_INT(leave(&first), 70);
    CHECK_INT(leave(&first), 70);
    pml_frame_stack_free(&second);
    end_test(&first);
}

static void the_innermost_of_equal_frames_is_found(void)
{
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    call(&stack, &id[0]);
    call(&stack, &id[1]);
    call(&stack, &id[0]);
    CHECK_INT(pml_frame_stack_find(&stack, &id[0]), 2);
    CHECK_INT(pml_frame_stack_find(&stack, &id[1]), 1);
    CHECK_INT(pml_frame_stack_find(&stack, &id[2]), -1);
    leave(&stack);
    CHECK_INT(pml_frame_stack_find(&stack, &id[0]), 0);
    end_test(&stack);
}

static void lost_returns_are_cut_and_their_peaks_kept(void)
{
    /* GIVEN five frames, the innermost with a peak */
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    for (int i = 0; i < 5; i++)
        call(&stack, &id[i]);
    pml_meter_move(PML_CPU, 50);
    pml_meter_move(PML_CPU, -50);
    fold();
    /* WHEN */
    pml_frame_stack_cut(&stack, 2);
    /* THEN */
    CHECK_INT(stack.depth, 2);
    CHECK_INT(code.references, 3);
    CHECK_INT(linked_windows(), 1);
    CHECK_POINTER(pml_frame_stack_top(&stack)->id, &id[1]);
    CHECK_INT(leave(&stack), 50);
    CHECK_INT(leave(&stack), 50);
    end_test(&stack);
}

static void a_cut_that_is_not_below_changes_nothing(void)
{
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    call(&stack, &id[0]);
    pml_frame_stack_cut(&stack, 1);
    pml_frame_stack_cut(&stack, 9);
    CHECK_INT(stack.depth, 1);
    end_test(&stack);
}

static void frames_are_used_again(void)
{
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    struct pml_frame *frame = call(&stack, &id[0]);
    CHECK(pml_stat_columns_begin(&frame->window.columns, 1));
    leave(&stack);
    CHECK(!frame->window.columns.active);
    CHECK_POINTER(frame->code, NULL);
    CHECK_POINTER(call(&stack, &id[1]), frame);
    end_test(&stack);
}

#define DEEP 10000

/* Frame i allocates one byte on the way down; all is freed at the deepest point. */
static void recurse_once(struct pml_frame_stack *stack)
{
    for (int i = 0; i < DEEP; i++) {
        call(stack, &id[0]);
        pml_meter_move(PML_CPU, 1);
    }
    pml_meter_move(PML_CPU, -DEEP);
    CHECK_INT(stack->depth, DEEP);
    CHECK_INT(linked_windows(), 1);
    for (int i = DEEP; i > 0; i--) {
        CHECK_INT(pml_frame_stack_top(stack)->window.span[PML_CPU].start.level[PML_ALLOCATED], i - 1);
        CHECK_INT(leave(stack), DEEP);
    }
}

static void recursion_may_be_deep(void)
{
    /* GIVEN */
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    /* WHEN, THEN the first time and with frames used again */
    recurse_once(&stack);
    int capacity = stack.capacity;
    recurse_once(&stack);
    CHECK_INT(stack.capacity, capacity);
    CHECK_INT(stack.depth, 0);
    end_test(&stack);
}

static void a_deep_stack_is_freed_whole(void)
{
    start_test();
    struct pml_frame_stack stack = {.depth = 0};
    for (int i = 0; i < DEEP; i++)
        call(&stack, &id[0]);
    end_test(&stack);
}

/* ---- random calls on three stacks against the history of all levels ---- */

#define STEPS 500
#define STACKS 3
#define DEPTH 40

static int64_t history[STEPS + 1];
static int now;

struct model {
    struct pml_frame_stack stack;
    int start[DEPTH];
};

static int64_t highest(int from)
{
    int64_t peak = history[from];
    for (int i = from; i <= now; i++)
        peak = peak < history[i] ? history[i] : peak;
    return peak;
}

static void move(struct check_random *random)
{
    int64_t size = random_below(random, 200) - 100;
    if (history[now] + size < 0)
        size = -history[now];
    history[now + 1] = history[now] + size;
    now++;
    pml_meter_move(PML_CPU, size);
}

static void return_or_lose(struct check_random *random, struct model *m)
{
    if (random_below(random, 12) == 0) {
        fold();
        pml_frame_stack_cut(&m->stack, random_below(random, m->stack.depth));
    } else {
        int64_t wanted = highest(m->start[m->stack.depth - 1]);
        CHECK_INT(leave(&m->stack), wanted);
    }
}

static void step_stack(struct check_random *random, struct model *m)
{
    if (m->stack.depth < DEPTH && random_below(random, 2)) {
        m->start[m->stack.depth] = now;
        call(&m->stack, &id[0]);
    } else if (m->stack.depth) {
        return_or_lose(random, m);
    }
}

static void calls_at_random(struct check_random *random)
{
    struct model model[STACKS];
    memset(model, 0, sizeof model);
    start_test();
    now = 0;
    while (now < STEPS) {
        if (random_below(random, 2))
            move(random);
        else
            step_stack(random, &model[random_below(random, STACKS)]);
    }
    int depth = 0;
    for (int i = 0; i < STACKS; i++)
        depth += model[i].stack.depth;
    CHECK_INT(code.references, 1 + depth);
    for (int i = 0; i < STACKS; i++)
        pml_frame_stack_free(&model[i].stack);
    CHECK_INT(code.references, 1);
    CHECK_INT(linked_windows(), 0);
}

static void calls_agree_with_the_naive_model(void)
{
    check_seeds(calls_at_random, 300);
}

int main(void)
{
    RUN(an_empty_stack_has_no_top);
    RUN(only_the_innermost_window_of_a_stack_is_linked);
    RUN(a_peak_in_an_inner_frame_is_the_outer_ones_too);
    RUN(a_peak_of_the_outer_frame_is_not_the_inner_ones);
    RUN(a_device_that_appears_in_an_inner_frame_is_the_outer_ones_too);
    RUN(stacks_of_two_threads_both_see_an_event);
    RUN(the_innermost_of_equal_frames_is_found);
    RUN(lost_returns_are_cut_and_their_peaks_kept);
    RUN(a_cut_that_is_not_below_changes_nothing);
    RUN(frames_are_used_again);
    RUN(recursion_may_be_deep);
    RUN(a_deep_stack_is_freed_whole);
    RUN(calls_agree_with_the_naive_model);
    return check_report();
}
