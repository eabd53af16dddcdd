/* Statistics columns: what a window makes of readings; nesting; devices that appear late. */
#include "check.h"
#include "meter/stat_columns.h"
#include "fresh.h"

enum { PEAK, LEVEL, COUNT, COLUMNS };

static void sample(int device, int64_t level, int64_t peak, int64_t count)
{
    pml_stat_columns_sample(device, (int64_t[COLUMNS]){level, level, count}, (int64_t[COLUMNS]){peak, level, count});
}

static void columns_get_ids_in_order(void)
{
    CHECK_INT(pml_stat_columns_count(), 0);
    CHECK_INT(pml_stat_columns_add(PML_STAT_COLUMN_PEAK), PEAK);
    CHECK_INT(pml_stat_columns_add(PML_STAT_COLUMN_LEVEL), LEVEL);
    CHECK_INT(pml_stat_columns_add(PML_STAT_COLUMN_COUNT), COUNT);
    CHECK_INT(pml_stat_columns_count(), COLUMNS);
}

static void a_device_is_known_once_it_was_read(void)
{
    CHECK(!pml_stat_columns_known(1));
    sample(1, 0, 0, 0);
    CHECK(pml_stat_columns_known(1));
    CHECK(!pml_stat_columns_known(2));
}

static void each_kind_makes_its_own_of_a_reading(void)
{
    /* GIVEN */
    struct pml_column_values columns = {.value = NULL};
    sample(1, 10, 99, 1000);
    CHECK(pml_stat_columns_begin(&columns, 2));
    /* WHEN */
    sample(1, 20, 50, 1003);
    pml_stat_columns_raise(&columns, 1);
    sample(1, 15, 30, 1007);
    pml_stat_columns_raise(&columns, 1);
    /* THEN */
    CHECK_INT(pml_stat_columns_value(&columns, 1, PEAK), 50);
    CHECK_INT(pml_stat_columns_value(&columns, 1, LEVEL), 15);
    CHECK_INT(pml_stat_columns_value(&columns, 1, COUNT), 7);
    pml_stat_columns_free(&columns);
    CHECK(!columns.active);
    CHECK_POINTER(columns.value, NULL);
}

static void a_window_begins_at_the_level_of_its_start(void)
{
    struct pml_column_values columns = {.value = NULL};
    sample(1, 10, 99, 0);
    CHECK(pml_stat_columns_begin(&columns, 2));
    CHECK_INT(pml_stat_columns_value(&columns, 1, PEAK), 10);
    pml_stat_columns_free(&columns);
}

static void beginning_anew_forgets_the_peak(void)
{
    struct pml_column_values columns = {.value = NULL};
    sample(1, 10, 10, 0);
    CHECK(pml_stat_columns_begin(&columns, 2));
    sample(1, 5, 70, 4);
    pml_stat_columns_raise(&columns, 1);
    CHECK(pml_stat_columns_begin(&columns, 2));
    CHECK_INT(pml_stat_columns_value(&columns, 1, PEAK), 5);
    CHECK_INT(pml_stat_columns_value(&columns, 1, COUNT), 0);
    pml_stat_columns_free(&columns);
}

static void a_counter_that_was_set_back_counts_from_nothing(void)
{
    struct pml_column_values columns = {.value = NULL};
    sample(1, 0, 0, 500);
    CHECK(pml_stat_columns_begin(&columns, 2));
    sample(1, 0, 0, 30);
    CHECK_INT(pml_stat_columns_value(&columns, 1, COUNT), 30);
    pml_stat_columns_free(&columns);
}

static void a_device_first_read_mid_window_began_with_nothing(void)
{
    /* GIVEN */
    struct pml_column_values columns = {.value = NULL};
    sample(1, 3, 3, 3);
    CHECK(pml_stat_columns_begin(&columns, 2));
    /* WHEN */
    sample(4, 20, 25, 6);
    pml_stat_columns_raise(&columns, 4);
    /* THEN the device, those between, and the old one are right */
    CHECK_INT(pml_stat_columns_value(&columns, 4, PEAK), 25);
    CHECK_INT(pml_stat_columns_value(&columns, 4, COUNT), 6);
    CHECK_INT(pml_stat_columns_value(&columns, 1, PEAK), 3);
    CHECK_INT(columns.devices, 5);
    CHECK_INT(columns.value[(size_t)3 * PML_MAX_STAT_COLUMNS], 0);
    pml_stat_columns_free(&columns);
}

static void a_device_that_the_window_never_took_in_has_no_peak_there(void)
{
    /* GIVEN marks that knew the device in an earlier window */
    struct pml_column_values columns = {.value = NULL};
    sample(2, 50, 50, 2);
    CHECK(pml_stat_columns_begin(&columns, 3));
    /* WHEN */
    CHECK(pml_stat_columns_begin(&columns, 2));
    sample(2, 20, 25, 6);
    /* THEN */
    CHECK_INT(pml_stat_columns_value(&columns, 2, PEAK), 0);
    CHECK_INT(pml_stat_columns_value(&columns, 2, LEVEL), 20);
    CHECK_INT(pml_stat_columns_value(&columns, 2, COUNT), 6);
    pml_stat_columns_free(&columns);
}

static void inactive_marks_take_nothing_in(void)
{
    struct pml_column_values columns = {.value = NULL}, inner = {.value = NULL};
    sample(1, 3, 8, 3);
    pml_stat_columns_raise(&columns, 1);
    CHECK_POINTER(columns.value, NULL);
    CHECK(pml_stat_columns_begin(&inner, 2));
    pml_stat_columns_absorb(&columns, &inner);
    CHECK_POINTER(columns.value, NULL);
    pml_stat_columns_free(&inner);
}

static void a_stopped_window_is_not_raised(void)
{
    struct pml_column_values columns = {.value = NULL};
    sample(1, 3, 3, 3);
    CHECK(pml_stat_columns_begin(&columns, 2));
    pml_stat_columns_stop(&columns);
    sample(1, 3, 80, 3);
    pml_stat_columns_raise(&columns, 1);
    CHECK_INT(pml_stat_columns_value(&columns, 1, PEAK), 3);
    pml_stat_columns_free(&columns);
}

static void an_inner_peak_passes_to_the_outer_but_its_count_does_not(void)
{
    /* GIVEN an outer window that began earlier, on fewer devices */
    struct pml_column_values outer = {.value = NULL}, inner = {.value = NULL};
    sample(1, 1, 1, 100);
    CHECK(pml_stat_columns_begin(&outer, 2));
    sample(1, 2, 2, 110);
    sample(3, 5, 5, 5);
    CHECK(pml_stat_columns_begin(&inner, 4));
    /* WHEN */
    sample(1, 4, 60, 115);
    pml_stat_columns_raise(&inner, 1);
    pml_stat_columns_absorb(&outer, &inner);
    /* THEN */
    CHECK_INT(pml_stat_columns_value(&inner, 1, COUNT), 5);
    CHECK_INT(pml_stat_columns_value(&outer, 1, COUNT), 15);
    CHECK_INT(pml_stat_columns_value(&outer, 1, PEAK), 60);
    CHECK_INT(pml_stat_columns_value(&outer, 3, PEAK), 5);
    CHECK_INT(pml_stat_columns_value(&outer, 3, COUNT), 5);
    pml_stat_columns_free(&outer);
    pml_stat_columns_free(&inner);
}

static void an_inner_lower_peak_changes_nothing(void)
{
    struct pml_column_values outer = {.value = NULL}, inner = {.value = NULL};
    sample(1, 50, 50, 0);
    CHECK(pml_stat_columns_begin(&outer, 2));
    sample(1, 10, 10, 0);
    CHECK(pml_stat_columns_begin(&inner, 2));
    pml_stat_columns_absorb(&outer, &inner);
    CHECK_INT(pml_stat_columns_value(&outer, 1, PEAK), 50);
    pml_stat_columns_free(&outer);
    pml_stat_columns_free(&inner);
}

static void a_reading_goes_to_every_linked_window(void)
{
    /* GIVEN three windows, one of them unlinked, one not tracking */
    fresh_meter();
    struct pml_window linked = {.devices = 0}, unlinked = {.devices = 0}, plain = {.devices = 0};
    sample(1, 1, 1, 1);
    CHECK(pml_stat_columns_begin(&linked.columns, 2));
    CHECK(pml_stat_columns_begin(&unlinked.columns, 2));
    pml_window_link(&linked);
    pml_window_link(&plain);
    /* WHEN */
    sample(1, 1, 40, 1);
    pml_window_fold_columns(1);
    /* THEN */
    CHECK_INT(pml_stat_columns_value(&linked.columns, 1, PEAK), 40);
    CHECK_INT(pml_stat_columns_value(&unlinked.columns, 1, PEAK), 1);
    CHECK_POINTER(plain.columns.value, NULL);
    pml_window_unlink(&linked);
    pml_window_unlink(&plain);
    pml_stat_columns_free(&linked.columns);
    pml_stat_columns_free(&unlinked.columns);
}

/* ---- random windows against a naive model ---- */

#define STEPS 300
#define DEVICES 4
#define WINDOWS 5

static struct {
    int now;
    int read; /* the step of the last reading */
    int64_t level[STEPS + 1][DEVICES];
    int64_t count[STEPS + 1][DEVICES];
} history;

static int64_t highest(int device, int from, int to)
{
    int64_t peak = history.level[from][device];
    for (int i = from; i <= to; i++)
        peak = peak < history.level[i][device] ? history.level[i][device] : peak;
    return peak;
}

/* What PyTorch's statistics say: peaks since the reading before. */
static void read_all(void)
{
    for (int d = 1; d < DEVICES; d++) {
        sample(d, history.level[history.now][d], highest(d, history.read, history.now), history.count[history.now][d]);
        pml_window_fold_columns(d);
    }
    history.read = history.now;
}

static void change_level(struct check_random *random)
{
    int now = history.now++;
    memcpy(history.level[now + 1], history.level[now], sizeof history.level[0]);
    memcpy(history.count[now + 1], history.count[now], sizeof history.count[0]);
    int device = 1 + random_below(random, DEVICES - 1);
    history.level[now + 1][device] = random_below(random, 10000);
    history.count[now + 1][device] += random_below(random, 3);
}

static void compare_marks(const struct pml_column_values *columns, int start)
{
    for (int d = 1; d < DEVICES; d++) {
        CHECK_INT(pml_stat_columns_value(columns, d, PEAK), highest(d, start, history.now));
        CHECK_INT(pml_stat_columns_value(columns, d, LEVEL), history.level[history.now][d]);
        CHECK_INT(pml_stat_columns_value(columns, d, COUNT), history.count[history.now][d] - history.count[start][d]);
    }
}

static void change_window(struct check_random *random, struct pml_window *window, int *start)
{
    int i = random_below(random, WINDOWS);
    read_all();
    if (start[i] < 0) {
        CHECK(pml_stat_columns_begin(&window[i].columns, DEVICES));
        pml_window_link(&window[i]);
        start[i] = history.now;
    } else {
        compare_marks(&window[i].columns, start[i]);
        pml_window_unlink(&window[i]);
        start[i] = -1;
    }
}

static void marks_at_random(struct check_random *random)
{
    struct pml_window window[WINDOWS];
    int start[WINDOWS] = {-1, -1, -1, -1, -1};
    fresh_meter();
    memset(&history, 0, sizeof history);
    memset(window, 0, sizeof window);
    while (history.now < STEPS) {
        if (random_below(random, 3) == 0)
            change_window(random, window, start);
        else
            change_level(random);
        if (random_below(random, 8) == 0)
            read_all();
    }
    for (int i = 0; i < WINDOWS; i++)
        pml_stat_columns_free(&window[i].columns);
    pml_window_forget_all();
}

static void marks_agree_with_the_naive_model(void)
{
    check_seeds(marks_at_random, 200);
}

/* Last: ids are never taken back. */
static void a_new_column_asks_for_new_readings_until_there_is_no_room(void)
{
    struct pml_column_values columns = {.value = NULL};
    sample(1, 30, 30, 0);
    CHECK(pml_stat_columns_known(1));
    CHECK(pml_stat_columns_begin(&columns, 2));
    for (int id = pml_stat_columns_count(); id < PML_MAX_STAT_COLUMNS; id++)
        CHECK_INT(pml_stat_columns_add(PML_STAT_COLUMN_LEVEL), id);
    CHECK(!pml_stat_columns_known(1));
    CHECK(pml_stat_columns_begin(&columns, 2));
    CHECK_INT(pml_stat_columns_value(&columns, 1, PEAK), 0);
    pml_stat_columns_free(&columns);
    CHECK_INT(pml_stat_columns_add(PML_STAT_COLUMN_LEVEL), -1);
    CHECK_INT(pml_stat_columns_count(), PML_MAX_STAT_COLUMNS);
}

int main(void)
{
    RUN(columns_get_ids_in_order);
    RUN(a_device_is_known_once_it_was_read);
    RUN(each_kind_makes_its_own_of_a_reading);
    RUN(a_window_begins_at_the_level_of_its_start);
    RUN(beginning_anew_forgets_the_peak);
    RUN(a_counter_that_was_set_back_counts_from_nothing);
    RUN(a_device_first_read_mid_window_began_with_nothing);
    RUN(a_device_that_the_window_never_took_in_has_no_peak_there);
    RUN(inactive_marks_take_nothing_in);
    RUN(a_stopped_window_is_not_raised);
    RUN(an_inner_peak_passes_to_the_outer_but_its_count_does_not);
    RUN(an_inner_lower_peak_changes_nothing);
    RUN(a_reading_goes_to_every_linked_window);
    RUN(marks_agree_with_the_naive_model);
    RUN(a_new_column_asks_for_new_readings_until_there_is_no_room);
    return check_report();
}
