/* What autograd keeps: which line a storage counts for, once, until it is freed; parameters, inputs, hooks, backward.
 */
#include "saved/saved_tables.h"

#include <pthread.h>

#include "segment_world.h"

static char memory[64];
static int asked;
static bool answer;

static bool is_parameter(const void *handle)
{
    asked++;
    return answer;
}

static void begin(void)
{
    fresh(false);
    asked = 0;
    answer = false;
    pml_saved_tables_ask_with(is_parameter);
    pml_saved_tables_follow(true);
}

static void watch(int r, int c, int group)
{
    subscribe(r, c);
    subscriber[r][c].saved = pml_saved_tables_new(FIRST, LINES - 1, group);
}

static void begin_in_line_3(struct pml_frame_stack *stack)
{
    begin();
    watch(1, 0, 1);
    start(1);
    call(stack, id, 0, 1);
    line_event(stack, 3);
}

static void end(struct pml_frame_stack *stack)
{
    pml_frame_stack_free(stack);
    for (int r = 0; r < RECORDERS; r++)
        for (int c = 0; c < CODES; c++) {
            pml_saved_tables_release(subscriber[r][c].saved);
            subscriber[r][c].saved = NULL;
        }
    unsubscribe_all();
    pml_saved_tables_follow(false);
    CHECK_INT(pml_saved_tables_blocks(), 0);
}

static void save(int block)
{
    pml_saved_tables_note(&(struct pml_saved_tensor){.storage = &memory[block], .bytes = 1000, .device = 1});
}

static struct pml_saved_figures figures(int r, int c, int line)
{
    struct pml_saved_figures f;
    pml_saved_tables_read(subscriber[r][c].saved, line, 1, &f);
    return f;
}

#define PEAK(r, c, line, kind) figures(r, c, line).peak[PML_SAVED_##kind]

static void a_block_counts_once_until_it_is_freed(void)
{
    /* GIVEN a line that allocates and saves */
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(1, 0, 1);
    start(1);
    call(&stack, id, 0, 1);
    for (int i = 0; i < 3; i++) {
        line_event(&stack, 3);
        pml_saved_tables_allocated(1, &memory[0], 50);
        save(0);
        save(0);
        line_event(&stack, 4);
        save(0);
        CHECK_INT(figures(1, 0, 3).now[PML_SAVED_ACTIVATION], 50);
        pml_saved_tables_freed(&memory[0]);
    }
    /* THEN */
    struct pml_saved_figures f = figures(1, 0, 3);
    CHECK_INT(f.now[PML_SAVED_ACTIVATION], 0);
    CHECK_INT(f.peak[PML_SAVED_ACTIVATION], 50);
    CHECK_INT(f.total, 150);
    CHECK_INT(f.run_max, 50);
    CHECK_INT(PEAK(1, 0, 4, ACTIVATION), 0);
    CHECK_INT(asked, 0); /* made in the line that saves it */
    end(&stack);
}

static void blocks_of_several_runs_add_up(void)
{
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(1, 0, 1);
    start(1);
    call(&stack, id, 0, 1);
    for (int i = 0; i < 4; i++) {
        line_event(&stack, 3);
        pml_saved_tables_allocated(1, &memory[2 * i], 10 + i);
        pml_saved_tables_allocated(1, &memory[2 * i + 1], 1);
        save(2 * i);
        save(2 * i + 1);
    }
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 10 + 11 + 12 + 13 + 4);
    CHECK_INT(figures(1, 0, 3).run_max, 14);
    end(&stack);
}

static void what_was_there_before_is_an_input_or_a_parameter(void)
{
    /* GIVEN three blocks, of which one was never seen */
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(1, 0, 1);
    start(1);
    pml_saved_tables_allocated(1, &memory[0], 30);
    pml_saved_tables_allocated(1, &memory[1], 40);
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    /* WHEN */
    save(0);
    answer = true;
    save(1);
    answer = false;
    save(2);
    save(2);
    save(1);
    /* THEN each was asked about once */
    CHECK_INT(PEAK(1, 0, 3, INPUT), 30 + 1000);
    CHECK_INT(PEAK(1, 0, 3, PARAMETER), 40);
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 0);
    CHECK_INT(asked, 3);
    end(&stack);
}

static void the_innermost_watched_line_is_charged(void)
{
    /* GIVEN an inner function that nobody watches, and one that does not record */
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(1, 0, 1);
    subscribe(1, 1);
    watch(2, 2, 2);
    start(1);
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 5);
    call(&stack, &id[1], 1, 1);
    line_event(&stack, 3);
    pml_saved_tables_allocated(1, &memory[0], 50);
    save(0);
    /* THEN */
    CHECK_INT(PEAK(1, 0, 5, ACTIVATION), 50);
    return_event(&stack);
    return_event(&stack);
    /* outside of all functions nothing is charged */
    pml_saved_tables_allocated(1, &memory[1], 50);
    save(1);
    CHECK_INT(PEAK(1, 0, 5, ACTIVATION), 50);
    end(&stack);
}

static void groups_count_each_for_itself(void)
{
    /* GIVEN two profilers of one group on two functions, one of another on the first */
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(0, 0, 1);
    watch(1, 1, 1);
    watch(2, 0, 2);
    for (int r = 0; r < RECORDERS; r++)
        start(r);
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    pml_saved_tables_allocated(1, &memory[0], 50);
    call(&stack, &id[1], 1, 1);
    line_event(&stack, 4);
    save(0);
    return_event(&stack);
    save(0);
    /* THEN the inner line has it in its group, the outer one in the other */
    CHECK_INT(PEAK(1, 1, 4, ACTIVATION), 50);
    CHECK_INT(PEAK(0, 0, 3, ACTIVATION), 0);
    CHECK_INT(PEAK(2, 0, 3, ACTIVATION), 50);
    pml_saved_tables_freed(&memory[0]);
    CHECK_INT(figures(1, 1, 4).now[PML_SAVED_ACTIVATION], 0);
    CHECK_INT(figures(2, 0, 3).now[PML_SAVED_ACTIVATION], 0);
    end(&stack);
}

static void hooks_and_backward_are_apart(void)
{
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(1, 0, 1);
    start(1);
    for (int step = 0; step < 2; step++) {
        call(&stack, id, 0, 1);
        line_event(&stack, 3);
        struct pml_saved_tensor tensor = {.storage = &memory[0], .device = 1, .hooked = true};
        pml_saved_tables_allocated(1, &memory[0], 50);
        pml_saved_tables_note(&tensor);
        pml_saved_tables_note(&tensor);
        line_event(&stack, 4);
        tensor = (struct pml_saved_tensor){.storage = &memory[1], .device = 1, .hooked = true, .backward = true};
        pml_saved_tables_allocated(1, &memory[1], 60);
        pml_saved_tables_note(&tensor);
        pml_saved_tables_freed(&memory[0]);
        pml_saved_tables_freed(&memory[1]);
        return_event(&stack);
    }
    CHECK_INT(figures(1, 0, 3).hooks_max, 50);
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 0);
    CHECK_INT(PEAK(1, 0, 4, BACKWARD), 60);
    CHECK_INT(figures(1, 0, 4).total, 0);
    end(&stack);
}

static void clearing_begins_anew(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_in_line_3(&stack);
    pml_saved_tables_allocated(1, &memory[0], 50);
    save(0);
    pml_saved_tables_clear(subscriber[1][0].saved);
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 0);
    save(0);
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 50);
    pml_saved_tables_freed(&memory[0]);
    CHECK_INT(figures(1, 0, 3).now[PML_SAVED_ACTIVATION], 0);
    end(&stack);
}

static void a_table_may_go_before_its_blocks(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_in_line_3(&stack);
    pml_saved_tables_allocated(1, &memory[0], 50);
    save(0);
    pml_frame_stack_free(&stack);
    pml_saved_tables_release(subscriber[1][0].saved);
    subscriber[1][0].saved = NULL;
    CHECK_INT(pml_saved_tables_blocks(), 1);
    pml_saved_tables_freed(&memory[0]);
    end(&stack);
}

static void lines_outside_are_not_counted(void)
{
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    watch(1, 0, 1);
    start(1);
    call(&stack, id, 0, 1);
    pml_saved_tables_allocated(1, &memory[0], 50);
    save(0); /* line 1 is not in the table */
    line_event(&stack, 3);
    save(0);
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 50);
    end(&stack);
}

static void many_blocks(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_in_line_3(&stack);
    const char *base = memory;
    for (intptr_t i = 0; i < 5000; i++) {
        pml_saved_tables_allocated(1, base + 512 * i, 2);
        pml_saved_tables_note(&(struct pml_saved_tensor){.storage = base + 512 * i, .device = 1});
    }
    CHECK_INT(pml_saved_tables_blocks(), 5000);
    for (intptr_t i = 0; i < 5000; i += 2)
        pml_saved_tables_freed(base + 512 * i);
    CHECK_INT(pml_saved_tables_blocks(), 2500);
    CHECK_INT(figures(1, 0, 3).now[PML_SAVED_ACTIVATION], 5000);
    CHECK_INT(PEAK(1, 0, 3, ACTIVATION), 10000);
    end(&stack);
}

static void *allocate_and_free(void *unused)
{
    static __thread char own[100];
    for (int i = 0; i < 20000; i++) {
        pml_saved_tables_allocated(1, &own[i % 100], 8);
        save(i % 64);
        pml_saved_tables_freed(&own[i % 100]);
    }
    return NULL;
}

static void on_several_threads(void)
{
    begin();
    struct pml_frame_stack stack = {.depth = 0};
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, allocate_and_free, NULL);
    watch(1, 0, 1);
    start(1);
    call(&stack, id, 0, 1);
    for (int i = 0; i < 20000; i++)
        save(i % 64);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    CHECK_INT(pml_saved_tables_blocks(), 64);
    end(&stack);
}

int main(void)
{
    RUN(a_block_counts_once_until_it_is_freed);
    RUN(blocks_of_several_runs_add_up);
    RUN(what_was_there_before_is_an_input_or_a_parameter);
    RUN(the_innermost_watched_line_is_charged);
    RUN(groups_count_each_for_itself);
    RUN(hooks_and_backward_are_apart);
    RUN(clearing_begins_anew);
    RUN(a_table_may_go_before_its_blocks);
    RUN(lines_outside_are_not_counted);
    RUN(many_blocks);
    RUN(on_several_threads);
    return check_report();
}
