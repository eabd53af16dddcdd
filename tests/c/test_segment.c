/* Segments: which profiler gets which, stops in the middle, statistics. */
#include "segment_world.h"

static void a_line_gets_what_happened_until_the_next(void)
{
    /* GIVEN */
    fresh(false);
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(1, 0);
    start(1);
    /* WHEN */
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    report(1, 100, 100, 1000);
    line_event(&stack, 4);
    report(1, 50, 150, 1000);
    report(1, -100, 50, 1000);
    return_event(&stack);
    /* THEN */
    CHECK_INT(stats_of(1, 0, 3, 1)->net_last, 100);
    CHECK_INT(stats_of(1, 0, 3, 1)->peak[PML_ALLOCATED], 100);
    CHECK_INT(stats_of(1, 0, 4, 1)->net_last, -50);
    CHECK_INT(stats_of(1, 0, 4, 1)->peak[PML_ALLOCATED], 150);
    CHECK_INT(stats_of(1, 0, 4, 1)->gross, 50);
    CHECK_INT(hits_of(1, 0, 3), 1);
    CHECK_INT(hits_of(1, 0, 4), 1);
    CHECK_INT(hits_of(1, 0, 5), 0);
    pml_frame_stack_free(&stack);
    unsubscribe_all();
}

static void a_called_functions_peak_belongs_to_the_calling_line(void)
{
    /* GIVEN line 3 calls a function of two lines */
    fresh(false);
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(1, 0);
    subscribe(1, 1);
    start(1);
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    call(&stack, &id[1], 1, 1);
    /* WHEN the peak is in the first line of the inner one */
    line_event(&stack, 5);
    pml_meter_move(PML_CPU, 500);
    pml_meter_move(PML_CPU, -500);
    line_event(&stack, 6);
    pml_meter_move(PML_CPU, 20);
    return_event(&stack);
    line_event(&stack, 4);
    return_event(&stack);
    /* THEN */
    CHECK_INT(stats_of(1, 1, 5, PML_CPU)->peak[PML_ALLOCATED], 500);
    CHECK_INT(stats_of(1, 1, 6, PML_CPU)->peak[PML_ALLOCATED], 20);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->peak[PML_ALLOCATED], 500);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->net_last, 20);
    CHECK_INT(stats_of(1, 0, 4, PML_CPU)->peak[PML_ALLOCATED], 20);
    pml_frame_stack_free(&stack);
    unsubscribe_all();
}

static void a_profiler_gets_only_segments_that_opened_after_its_start(void)
{
    /* GIVEN */
    fresh(false);
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(1, 0);
    subscribe(2, 0);
    start(1);
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    pml_meter_move(PML_CPU, 5);
    /* WHEN the second starts within line 3 */
    start(2);
    line_event(&stack, 4);
    pml_meter_move(PML_CPU, 5);
    return_event(&stack);
    /* THEN */
    CHECK(stats_of(1, 0, 3, PML_CPU) != NULL);
    CHECK_POINTER(stats_of(2, 0, 3, PML_CPU), NULL);
    CHECK_INT(hits_of(2, 0, 3), 0);
    CHECK_INT(stats_of(2, 0, 4, PML_CPU)->runs, 1);
    pml_frame_stack_free(&stack);
    unsubscribe_all();
}

static void a_profiler_that_stops_gets_what_is_open_in_all_frames(void)
{
    /* GIVEN two profilers, and two frames with an open line */
    fresh(false);
    struct pml_frame_stack stack = {.depth = 0};
    for (int r = 1; r <= 2; r++) {
        subscribe(r, 0);
        subscribe(r, 1);
        start(r);
    }
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    call(&stack, &id[1], 1, 1);
    line_event(&stack, 5);
    pml_meter_move(PML_CPU, 70);
    pml_meter_move(PML_CPU, -60);
    /* WHEN */
    stop(1, &stack, 1);
    /* THEN */
    CHECK_INT(stats_of(1, 1, 5, PML_CPU)->peak[PML_ALLOCATED], 70);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->peak[PML_ALLOCATED], 70);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->net_last, 10);
    CHECK_POINTER(stats_of(2, 0, 3, PML_CPU), NULL);
    /* and the other goes on */
    pml_meter_move(PML_CPU, 90);
    return_event(&stack);
    return_event(&stack);
    CHECK_INT(stats_of(2, 0, 3, PML_CPU)->net_last, 100);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->runs, 1);
    pml_frame_stack_free(&stack);
    unsubscribe_all();
}

static void a_profiler_that_starts_again_does_not_get_the_open_segment(void)
{
    fresh(false);
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(1, 0);
    start(1);
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    pml_meter_move(PML_CPU, 1);
    stop(1, &stack, 1);
    start(1);
    pml_meter_move(PML_CPU, 1);
    return_event(&stack);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->runs, 1);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->net_sum, 1);
    pml_frame_stack_free(&stack);
    unsubscribe_all();
}

static void a_code_is_recorded_while_any_profiler_records(void)
{
    fresh(false);
    subscribe(1, 0);
    subscribe(2, 0);
    struct pml_code *code = pml_codes_find(&key[0]);
    CHECK(!pml_codes_recorded(code));
    start(2);
    CHECK(pml_codes_recorded(code));
    stop(2, NULL, 0);
    CHECK(!pml_codes_recorded(code));
    unsubscribe_all();
}

static void a_sample_is_wanted_by_who_records_columns_of_the_line(void)
{
    /* GIVEN */
    fresh(true);
    recorder[0].sample_runs = 2;
    subscribe(0, 0);
    subscribe(1, 0);
    struct pml_code *code = pml_codes_find(&key[0]);
    start(1);
    CHECK(!pml_segment_wants_sample(code, 3));
    /* WHEN */
    start(0);
    /* THEN for its lines, and until there were enough */
    CHECK(pml_segment_wants_sample(code, 3));
    CHECK(!pml_segment_wants_sample(code, 1));
    CHECK(!pml_segment_wants_sample(code, LINES));
    subscriber[0][0].table->line[3 - FIRST].sampled = 1;
    CHECK(pml_segment_wants_sample(code, 3));
    subscriber[0][0].table->line[3 - FIRST].sampled = 2;
    CHECK(!pml_segment_wants_sample(code, 3));
    CHECK(pml_segment_wants_sample(code, 4));
    unsubscribe_all();
}

/* ---- a hidden value on the device, as PyTorch's statistics would have ---- */

static int64_t hidden, hidden_peak, hidden_count;

static void read_hidden(void)
{
    pml_stat_columns_sample(1, (int64_t[]){hidden, hidden, hidden_count},
                            (int64_t[]){hidden_peak, hidden, hidden_count});
    pml_window_fold_columns(1);
    hidden_peak = hidden;
}

static void set_hidden(int64_t value)
{
    hidden = value;
    hidden_peak = hidden_peak < value ? value : hidden_peak;
    hidden_count++;
    report(1, 1, 1, 1);
}

static int64_t column_of(int c, int line, int column)
{
    return pml_line_table_columns(subscriber[0][c].table, line, 1 + 1)->value[column];
}

/* The reading that begins a sampled line also tells of what came before: that goes to the frame around alone. */
static void a_sampled_line_does_not_get_what_came_before_it(void)
{
    /* GIVEN line 3 is sampled and calls a function whose first line is not */
    fresh(true);
    read_statistics = read_hidden;
    hidden = hidden_peak = hidden_count = 0;
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(0, 1);
    start(0);
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    set_hidden(900);
    set_hidden(10);
    call(&stack, &id[1], 1, 1);
    /* WHEN nothing happens before its next, sampled line */
    line_event(&stack, 5);
    set_hidden(20);
    return_event(&stack);
    return_event(&stack);
    /* THEN */
    CHECK_INT(column_of(1, 5, PEAK), 20);
    CHECK_INT(column_of(1, 5, COUNT), 1);
    CHECK_INT(column_of(0, 3, PEAK), 900);
    CHECK_INT(column_of(0, 3, COUNT), 3);
    pml_frame_stack_free(&stack);
    unsubscribe_all();
}

int main(void)
{
    RUN(a_line_gets_what_happened_until_the_next);
    RUN(a_called_functions_peak_belongs_to_the_calling_line);
    RUN(a_profiler_gets_only_segments_that_opened_after_its_start);
    RUN(a_profiler_that_stops_gets_what_is_open_in_all_frames);
    RUN(a_profiler_that_starts_again_does_not_get_the_open_segment);
    RUN(a_code_is_recorded_while_any_profiler_records);
    RUN(a_sample_is_wanted_by_who_records_columns_of_the_line);
    RUN(a_sampled_line_does_not_get_what_came_before_it);
    return check_report();
}
