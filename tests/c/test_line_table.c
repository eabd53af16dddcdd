/* Line counters: what a segment adds, late devices, the target slot, statistics columns, odd line numbers. */
#include <limits.h>

#include "check.h"
#include "fresh.h"
#include "lines/line_table.h"

static struct pml_window window;
static uint64_t passes;
static int64_t held = -1; /* by the line as it begins */

/* A segment on one device, in which nothing else happened on the others. */
static void segment(struct pml_line_table *table, int line, int device, int64_t start, int64_t peak, int64_t end)
{
    memset(&window, 0, sizeof window);
    window.devices = pml_meter_devices();
    window.call = window.pass = ++passes;
    for (int d = 0; d < window.devices; d++)
        window.span[d].held = -1;
    window.span[device] = (struct pml_span){
        .held = held,
        .peak = {peak, peak, peak + 1000},
        .start = {{start, start, start}, 10, 1},
        .end = {{end, end, end + 500}, 10 + 3 * peak, 4},
        .end_ticks = 1,
    };
    CHECK(pml_line_table_record(table, line, &window, 1));
}

static void use_device(int device)
{
    report(device, 1, 1, 1);
}

static struct pml_line_table *new_table(void)
{
    fresh_meter();
    return pml_line_table_new(10, 19, 0, NULL);
}

static void a_new_table_is_empty(void)
{
    struct pml_line_table *table = new_table();
    CHECK_INT(table->lines, 10);
    for (int line = 10; line < 20; line++)
        for (int slot = 0; slot <= PML_MAX_DEVICES; slot++) {
            CHECK_POINTER(pml_line_table_stats(table, line, slot), NULL);
            CHECK_POINTER(pml_line_table_columns(table, line, slot), NULL);
        }
    pml_line_table_free(table);
}

static void lines_outside_are_not_counted(void)
{
    /* GIVEN */
    struct pml_line_table *table = new_table();
    use_device(1);
    /* WHEN */
    for (int line = 8; line <= 21; line++) {
        pml_line_table_hit(table, line);
        segment(table, line, 1, 0, 5, 5);
    }
    pml_line_table_hit(table, -1);
    segment(table, -1, 1, 0, 5, 5);
    /* THEN */
    CHECK(!pml_line_table_has(table, 9));
    CHECK(pml_line_table_has(table, 10));
    CHECK(pml_line_table_has(table, 19));
    CHECK(!pml_line_table_has(table, 20));
    for (int i = 0; i < 10; i++) {
        CHECK_INT(table->line[i].hits, 1);
        CHECK_INT(table->stats[1 + 1][i].runs, 1);
    }
    pml_line_table_free(table);
}

static void the_first_and_last_lines_there_can_be(void)
{
    struct pml_line_table *table = pml_line_table_new(INT_MAX - 1, INT_MAX, 0, NULL);
    CHECK(pml_line_table_has(table, INT_MAX));
    CHECK(!pml_line_table_has(table, INT_MAX - 2));
    CHECK(!pml_line_table_has(table, INT_MIN));
    CHECK(!pml_line_table_has(table, -1));
    pml_line_table_free(table);
    table = pml_line_table_new(INT_MIN, INT_MIN + 1, 0, NULL);
    CHECK(pml_line_table_has(table, INT_MIN));
    CHECK(!pml_line_table_has(table, INT_MAX));
    CHECK(!pml_line_table_has(table, 0));
    pml_line_table_free(table);
}

static void a_segment_adds_its_figures(void)
{
    /* GIVEN */
    struct pml_line_table *table = new_table();
    use_device(1);
    /* WHEN */
    segment(table, 12, 1, 100, 500, 350);
    /* THEN */
    const struct pml_line_stats *s = pml_line_table_stats(table, 12, 2);
    CHECK_INT(s->runs, 1);
    CHECK_INT(s->peak[PML_ALLOCATED], 500);
    CHECK_INT(s->peak[PML_RESERVED], 1500);
    CHECK_INT(s->level[PML_ACTIVE], 350);
    CHECK_INT(s->level[PML_RESERVED], 850);
    CHECK_INT(s->net_first, 250);
    CHECK_INT(s->net_max, 250);
    CHECK_INT(s->net_last, 250);
    CHECK_INT(s->net_sum, 250);
    CHECK_INT(s->gross, 1500);
    CHECK_INT(s->count, 3);
    pml_line_table_free(table);
}

static void segments_of_a_line_are_summed_and_compared(void)
{
    /* GIVEN */
    struct pml_line_table *table = new_table();
    use_device(1);
    /* WHEN the net is -50, 30, -80 */
    segment(table, 12, 1, 100, 300, 50);
    segment(table, 12, 1, 50, 200, 80);
    segment(table, 12, 1, 80, 100, 0);
    /* THEN */
    const struct pml_line_stats *s = pml_line_table_stats(table, 12, 2);
    CHECK_INT(s->runs, 3);
    CHECK_INT(s->peak[PML_ALLOCATED], 300);
    CHECK_INT(s->level[PML_ALLOCATED], 80);
    CHECK_INT(s->net_first, -50);
    CHECK_INT(s->net_max, 30);
    CHECK_INT(s->net_later_max, 30);
    CHECK_INT(s->net_last, -80);
    CHECK_INT(s->net_sum, -100);
    CHECK_INT(s->gross, 1800);
    CHECK_POINTER(pml_line_table_stats(table, 13, 2), NULL);
    pml_line_table_free(table);
}

static void only_negative_nets_have_a_negative_maximum(void)
{
    struct pml_line_table *table = new_table();
    use_device(1);
    segment(table, 12, 1, 100, 100, 50);
    segment(table, 12, 1, 50, 50, 40);
    CHECK_INT(pml_line_table_stats(table, 12, 2)->net_max, -10);
    pml_line_table_free(table);
}

static void the_level_at_the_end_is_a_peak_too(void)
{
    struct pml_line_table *table = new_table();
    use_device(1);
    segment(table, 12, 1, 0, 10, 90);
    CHECK_INT(pml_line_table_stats(table, 12, 2)->peak[PML_ALLOCATED], 90);
    pml_line_table_free(table);
}

static void a_device_without_events_has_no_figures(void)
{
    struct pml_line_table *table = new_table();
    use_device(3);
    segment(table, 12, 3, 0, 10, 10);
    CHECK(pml_line_table_stats(table, 12, 1 + 3) != NULL);
    CHECK_POINTER(table->stats[1 + 2], NULL);
    CHECK_POINTER(table->stats[1 + PML_CPU], NULL);
    pml_line_table_free(table);
}

static void runs_before_a_device_appeared_held_nothing_on_it(void)
{
    /* GIVEN two runs without the device */
    struct pml_line_table *table = new_table();
    segment(table, 12, 1, 0, 0, 0);
    segment(table, 12, 1, 0, 0, 0);
    CHECK_POINTER(table->stats[1 + 1], NULL);
    /* WHEN */
    use_device(1);
    segment(table, 12, 1, 100, 100, 60);
    segment(table, 12, 1, 60, 100, 90);
    /* THEN */
    const struct pml_line_stats *s = pml_line_table_stats(table, 12, 2);
    CHECK_INT(s->runs, 4);
    CHECK_INT(s->net_first, 0);
    CHECK_INT(s->net_max, 30);
    CHECK_INT(s->net_sum, -10);
    CHECK_INT(s->net_last, 30);
    /* AND the target's figures are the same ones */
    const struct pml_line_stats *target = pml_line_table_stats(table, 12, PML_TARGET_SLOT);
    CHECK_POINTER(table->stats[PML_TARGET_SLOT], NULL);
    CHECK_INT(target->runs, 4);
    CHECK_INT(target->net_first, 0);
    CHECK_INT(target->net_max, 30);
    CHECK_INT(target->net_later_max, s->net_later_max);
    CHECK_INT(target->net_sum, -10);
    pml_line_table_free(table);
}

static void one_target_needs_no_figures_of_its_own(void)
{
    struct pml_line_table *table = new_table();
    use_device(1);
    for (int i = 0; i < 3; i++)
        segment(table, 12, 1, 0, 100, 100);
    CHECK_POINTER(table->stats[PML_TARGET_SLOT], NULL);
    CHECK_POINTER(pml_line_table_stats(table, 12, PML_TARGET_SLOT), pml_line_table_stats(table, 12, 2));
    CHECK_POINTER(pml_line_table_stats(table, 13, PML_TARGET_SLOT), NULL);
    pml_line_table_free(table);
}

static void a_second_target_sets_the_figures_apart(void)
{
    /* GIVEN a line that grew on the only device that it was charged to */
    struct pml_line_table *table = new_table();
    use_device(2);
    use_device(1);
    for (int i = 0; i < 3; i++) {
        held = i ? 100 * i : -1;
        segment(table, 12, 1, 100 * i, 100 * i + 120, 100 * i + 100);
    }
    held = -1;
    CHECK_INT(pml_line_table_stats(table, 12, 2)->growth->runs.open.held, 200);
    CHECK_INT(pml_line_table_stats(table, 12, 2)->growth->runs.closed, 1);
    /* WHEN it is charged to another one, that stands at 7 */
    window.span[2] = (struct pml_span){.peak = {7, 7, 7}, .end.level = {7, 7, 7}, .end_ticks = 1};
    CHECK(pml_line_table_record(table, 12, &window, 2));
    segment(table, 12, 1, 300, 310, 310);
    /* THEN */
    const struct pml_line_stats *s = pml_line_table_stats(table, 12, PML_TARGET_SLOT);
    CHECK_INT(s->runs, 5);
    CHECK_INT(s->net_sum, 100 + 100 + 100 + 7 + 10);
    CHECK_INT(s->peak[PML_ALLOCATED], 320);
    CHECK_POINTER(s->growth, NULL);
    CHECK_INT(pml_line_table_stats(table, 12, 2)->net_sum, 100 + 100 + 100 + 100 + 10);
    CHECK_INT(table->line[12 - 10].charged, 1 << 1 | 1 << 2);
    pml_line_table_free(table);
}

static void the_target_slot_follows_the_target(void)
{
    /* GIVEN a segment on both devices */
    struct pml_line_table *table = new_table();
    use_device(2);
    segment(table, 12, 1, 0, 100, 100);
    window.span[2] = (struct pml_span){.peak = {7, 7, 7}, .end.level = {7, 7, 7}, .end_ticks = 1};
    /* WHEN it is charged to one, then to the other */
    CHECK(pml_line_table_record(table, 14, &window, 2));
    CHECK(pml_line_table_record(table, 14, &window, 1));
    /* THEN */
    const struct pml_line_stats *s = pml_line_table_stats(table, 14, PML_TARGET_SLOT);
    CHECK_INT(s->net_first, 7);
    CHECK_INT(s->net_last, 100);
    CHECK_INT(s->runs, 2);
    CHECK_INT(table->line[14 - 10].charged, 1 << 2 | 1 << 1);
    CHECK_INT(table->line[13 - 10].charged, 0);
    pml_line_table_free(table);
}

static void a_target_that_is_not_there_holds_nothing(void)
{
    struct pml_line_table *table = new_table();
    segment(table, 12, PML_CPU, 0, 100, 100);
    CHECK(pml_line_table_record(table, 12, &window, PML_MAX_DEVICES - 1));
    const struct pml_line_stats *s = pml_line_table_stats(table, 12, PML_TARGET_SLOT);
    CHECK_INT(s->runs, 2);
    CHECK_INT(s->peak[PML_ALLOCATED], 0);
    CHECK_INT(s->net_sum, 0);
    CHECK(table->line[2].charged >> (PML_MAX_DEVICES - 1) & 1);
    pml_line_table_free(table);
}

static void clearing_leaves_an_empty_table(void)
{
    struct pml_line_table *table = new_table();
    use_device(1);
    pml_line_table_hit(table, 12);
    segment(table, 12, 1, 0, 5, 5);
    table->line[2].sampled = 3;
    table->line[2].stat_ticks = 4;
    pml_line_table_clear(table);
    CHECK_INT(table->line[2].hits, 0);
    CHECK_INT(table->line[2].charged, 0);
    CHECK_INT(table->line[2].sampled, 0);
    CHECK_INT(table->line[2].stat_ticks, 0);
    CHECK_POINTER(pml_line_table_stats(table, 12, 2), NULL);
    segment(table, 12, 1, 0, 5, 5);
    CHECK_INT(pml_line_table_stats(table, 12, 2)->runs, 1);
    pml_line_table_free(table);
}

static void nothing_can_be_freed(void)
{
    pml_line_table_free(NULL);
    CHECK(true);
}

/* ---- statistics columns ---- */

static int columns[2];

static struct pml_line_table *new_table_with_columns(void)
{
    fresh_meter();
    if (pml_stat_columns_count() == 0) {
        columns[1] = pml_stat_columns_add(PML_STAT_COLUMN_LEVEL);
        columns[0] = pml_stat_columns_add(PML_STAT_COLUMN_PEAK);
    }
    return pml_line_table_new(10, 19, 2, columns);
}

static void sample(int device, int64_t level, int64_t peak)
{
    pml_stat_columns_sample(device, (int64_t[]){level, level}, (int64_t[]){level, peak});
}

/* A segment in which the device went to these values. */
static bool sampled_segment(struct pml_line_table *table, int line, int device, int64_t level, int64_t peak, int target)
{
    struct pml_window around = {.devices = 0};
    fold();
    pml_window_restart(&around);
    bool begun = pml_stat_columns_begin(&around.columns, pml_meter_devices());
    use_device(device);
    sample(device, level, peak);
    fold();
    around.devices = pml_meter_devices();
    pml_stat_columns_raise(&around.columns, device);
    bool kept = pml_line_table_record_columns(table, line, &around, target);
    pml_stat_columns_free(&around.columns);
    return begun && kept;
}

static void columns_keep_the_highest_of_all_segments(void)
{
    /* GIVEN */
    struct pml_line_table *table = new_table_with_columns();
    /* WHEN */
    CHECK(sampled_segment(table, 12, 1, 30, 50, 1));
    CHECK(sampled_segment(table, 12, 1, 40, 45, 1));
    /* THEN in the order of the recorder, for the device and for the target */
    const struct pml_line_columns *stat_values = pml_line_table_columns(table, 12, 1 + 1);
    CHECK(stat_values->known);
    CHECK_INT(stat_values->value[0], 50);
    CHECK_INT(stat_values->value[1], 40);
    CHECK_INT(pml_line_table_columns(table, 12, PML_TARGET_SLOT)->value[0], 50);
    CHECK_INT(table->line[2].sampled, 2);
    CHECK_POINTER(pml_line_table_columns(table, 13, 1 + 1), NULL);
    pml_line_table_free(table);
}

static void columns_of_another_device_are_not_the_targets(void)
{
    struct pml_line_table *table = new_table_with_columns();
    CHECK(sampled_segment(table, 12, 2, 30, 50, 1));
    CHECK_INT(pml_line_table_columns(table, 12, 1 + 2)->value[1], 30);
    const struct pml_line_columns *target = pml_line_table_columns(table, 12, PML_TARGET_SLOT);
    CHECK(!target || target->value[1] != 30);
    pml_line_table_free(table);
}

static void a_device_that_was_never_read_has_no_columns(void)
{
    struct pml_line_table *table = new_table_with_columns();
    use_device(5);
    CHECK(sampled_segment(table, 12, 1, 30, 50, 5));
    CHECK(pml_line_table_columns(table, 12, 1 + 1) != NULL);
    CHECK_POINTER(pml_line_table_columns(table, 12, 1 + 5), NULL);
    CHECK_POINTER(pml_line_table_columns(table, 12, PML_TARGET_SLOT), NULL);
    pml_line_table_free(table);
}

static void a_first_negative_value_is_kept(void)
{
    struct pml_line_table *table = new_table_with_columns();
    CHECK(sampled_segment(table, 12, 1, -5, -5, 1));
    CHECK_INT(pml_line_table_columns(table, 12, 2)->value[1], -5);
    pml_line_table_free(table);
}

static void lines_outside_have_no_columns(void)
{
    struct pml_line_table *table = new_table_with_columns();
    CHECK(sampled_segment(table, 9, 1, 30, 50, 1));
    CHECK(sampled_segment(table, 20, 1, 30, 50, 1));
    for (int slot = 0; slot <= PML_MAX_DEVICES; slot++)
        CHECK_POINTER(table->stat_values[slot], NULL);
    pml_line_table_free(table);
}

static void a_second_segment_without_events_is_not_a_sample(void)
{
    /* GIVEN a sampled line */
    struct pml_line_table *table = new_table_with_columns();
    struct pml_window quiet = {.devices = 0};
    CHECK(sampled_segment(table, 12, 1, 30, 50, 1));
    /* WHEN */
    pml_window_restart(&quiet);
    CHECK(pml_stat_columns_begin(&quiet.columns, pml_meter_devices()));
    CHECK(pml_line_table_record_columns(table, 12, &quiet, 1));
    /* THEN */
    CHECK_INT(table->line[2].sampled, 1);
    CHECK_INT(pml_line_table_columns(table, 12, 2)->value[0], 50);
    pml_stat_columns_free(&quiet.columns);
    pml_line_table_free(table);
}

/* A recursive line ends twice at the same moment: the call's segment holds more than the innermost one's. */
static void a_longer_segment_that_ends_at_the_same_moment_counts(void)
{
    /* GIVEN an outer segment with a peak in it, then an inner one of the same line without events */
    struct pml_line_table *table = new_table_with_columns();
    struct pml_window outer = {.devices = 0}, inner = {.devices = 0};
    use_device(1);
    sample(1, 10, 10);
    pml_window_restart(&outer);
    CHECK(pml_stat_columns_begin(&outer.columns, pml_meter_devices()));
    use_device(1);
    sample(1, 20, 90);
    pml_stat_columns_raise(&outer.columns, 1);
    pml_window_restart(&inner);
    CHECK(pml_stat_columns_begin(&inner.columns, pml_meter_devices()));
    /* WHEN */
    CHECK(pml_line_table_record_columns(table, 12, &inner, 1));
    CHECK(pml_line_table_record_columns(table, 12, &outer, 1));
    /* THEN */
    CHECK_INT(pml_line_table_columns(table, 12, 2)->value[0], 90);
    CHECK_INT(table->line[2].sampled, 1);
    pml_stat_columns_free(&inner.columns);
    pml_stat_columns_free(&outer.columns);
    pml_line_table_free(table);
}

/* The same without events, but charged to another device than the line's last segment. */
static void another_target_counts_though_nothing_happened(void)
{
    struct pml_line_table *table = new_table_with_columns();
    struct pml_window quiet = {.devices = 0};
    CHECK(sampled_segment(table, 12, 1, 30, 50, PML_CPU));
    CHECK_POINTER(pml_line_table_columns(table, 12, PML_TARGET_SLOT), NULL);
    pml_window_restart(&quiet);
    CHECK(pml_stat_columns_begin(&quiet.columns, pml_meter_devices()));
    CHECK(pml_line_table_record_columns(table, 12, &quiet, 1));
    CHECK_INT(pml_line_table_columns(table, 12, PML_TARGET_SLOT)->value[1], 30);
    pml_stat_columns_free(&quiet.columns);
    pml_line_table_free(table);
}

static void a_table_without_columns_takes_none(void)
{
    struct pml_line_table *table = new_table();
    CHECK(sampled_segment(table, 12, 1, 30, 50, 1));
    CHECK_INT(table->line[2].sampled, 0);
    CHECK_POINTER(table->stat_values[2], NULL);
    pml_line_table_free(table);
}

int main(void)
{
    RUN(a_new_table_is_empty);
    RUN(lines_outside_are_not_counted);
    RUN(the_first_and_last_lines_there_can_be);
    RUN(a_segment_adds_its_figures);
    RUN(segments_of_a_line_are_summed_and_compared);
    RUN(only_negative_nets_have_a_negative_maximum);
    RUN(the_level_at_the_end_is_a_peak_too);
    RUN(a_device_without_events_has_no_figures);
    RUN(runs_before_a_device_appeared_held_nothing_on_it);
    RUN(the_target_slot_follows_the_target);
    RUN(one_target_needs_no_figures_of_its_own);
    RUN(a_second_target_sets_the_figures_apart);
    RUN(a_target_that_is_not_there_holds_nothing);
    RUN(clearing_leaves_an_empty_table);
    RUN(nothing_can_be_freed);
    RUN(columns_keep_the_highest_of_all_segments);
    RUN(columns_of_another_device_are_not_the_targets);
    RUN(a_device_that_was_never_read_has_no_columns);
    RUN(a_first_negative_value_is_kept);
    RUN(lines_outside_have_no_columns);
    RUN(a_second_segment_without_events_is_not_a_sample);
    RUN(a_longer_segment_that_ends_at_the_same_moment_counts);
    RUN(another_target_counts_though_nothing_happened);
    RUN(a_table_without_columns_takes_none);
    return check_report();
}
