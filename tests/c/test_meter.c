/* Meter: levels, peaks between folds, windows that nest and overlap, devices that appear late. */
#include "check.h"
#include "fresh.h"

#define MIB (INT64_C(1) << 20)

/* ---- events ---- */

static void a_move_changes_allocated_alone(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_levels now;
    /* WHEN */
    pml_meter_move(PML_CPU, 100);
    pml_meter_move(PML_CPU, 50);
    pml_meter_move(PML_CPU, -30);
    /* THEN */
    pml_meter_read(PML_CPU, &now);
    CHECK_INT(now.level[PML_ACTIVE], 0);
    CHECK_INT(now.level[PML_ALLOCATED], 120);
    CHECK_INT(now.level[PML_RESERVED], 0);
    CHECK_INT(now.gross, 150);
    CHECK_INT(now.count, 2);
}

static void a_set_carries_the_totals(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_levels now;
    /* WHEN */
    pml_meter_set(2, 512, (int64_t[]){700, 512, 2 * MIB});
    pml_meter_set(2, -512, (int64_t[]){188, 0, 2 * MIB});
    /* THEN */
    pml_meter_read(2, &now);
    CHECK_INT(now.level[PML_ACTIVE], 188);
    CHECK_INT(now.level[PML_ALLOCATED], 0);
    CHECK_INT(now.level[PML_RESERVED], 2 * MIB);
    CHECK_INT(now.gross, 512);
    CHECK_INT(now.count, 1);
}

static void events_tick_and_tell_which_device_is_used(void)
{
    /* GIVEN */
    fresh_meter();
    CHECK_INT(pml_meter_devices(), 1);
    CHECK(!pml_meter_used(PML_CPU));
    /* WHEN */
    report(3, 8, 8, 8);
    /* THEN */
    CHECK_INT(pml_meter_ticks(), 1);
    CHECK_INT(pml_meter_devices(), 4);
    CHECK(pml_meter_used(3));
    CHECK(!pml_meter_used(1));
    CHECK(!pml_meter_used(PML_CPU));
}

static void a_touch_ticks_but_uses_no_device(void)
{
    fresh_meter();
    pml_meter_invalidate();
    CHECK_INT(pml_meter_ticks(), 1);
    CHECK(!pml_meter_used(PML_CPU));
    CHECK_INT(pml_meter_devices(), 1);
}

static void the_last_device_fits(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    open_window(&window);
    /* WHEN */
    report(PML_MAX_DEVICES - 1, 9, 9, 9);
    close_window(&window);
    /* THEN */
    CHECK_INT(pml_meter_devices(), PML_MAX_DEVICES);
    CHECK_INT(window.devices, PML_MAX_DEVICES);
    CHECK_INT(window.span[PML_MAX_DEVICES - 1].peak[PML_ALLOCATED], 9);
}

/* ---- windows ---- */

static void a_peak_between_two_folds_is_kept(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    pml_meter_move(PML_CPU, 10);
    open_window(&window);
    /* WHEN */
    pml_meter_move(PML_CPU, 90);
    pml_meter_move(PML_CPU, -80);
    close_window(&window);
    /* THEN */
    CHECK_INT(window.span[PML_CPU].start.level[PML_ALLOCATED], 10);
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], 100);
    CHECK_INT(window.span[PML_CPU].peak[PML_RESERVED], 0);
}

static void an_earlier_peak_is_not_the_windows(void)
{
    /* GIVEN a peak before the window */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    pml_meter_move(PML_CPU, 1000);
    pml_meter_move(PML_CPU, -1000);
    /* WHEN */
    open_window(&window);
    pml_meter_move(PML_CPU, 5);
    close_window(&window);
    /* THEN */
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], 5);
}

static void a_window_without_events_peaks_at_its_start(void)
{
    fresh_meter();
    struct pml_window window = {.devices = 0};
    pml_meter_move(PML_CPU, 77);
    open_window(&window);
    close_window(&window);
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], 77);
    CHECK_INT(window.ticks, pml_meter_ticks());
}

static void a_peak_in_an_inner_window_is_the_outer_ones_too(void)
{
    /* GIVEN two windows, both linked */
    fresh_meter();
    struct pml_window outer = {.devices = 0}, inner = {.devices = 0};
    open_window(&outer);
    open_window(&inner);
    /* WHEN */
    report(1, 400, 400, MIB);
    report(1, -400, 0, MIB);
    close_window(&inner);
    pml_meter_move(PML_CPU, 1);
    close_window(&outer);
    /* THEN */
    CHECK_INT(inner.span[1].peak[PML_ALLOCATED], 400);
    CHECK_INT(outer.span[1].peak[PML_ALLOCATED], 400);
    CHECK_INT(outer.span[1].peak[PML_RESERVED], MIB);
    CHECK_INT(inner.span[PML_CPU].peak[PML_ALLOCATED], 0);
    CHECK_INT(outer.span[PML_CPU].peak[PML_ALLOCATED], 1);
}

static void overlapping_windows_each_see_their_own(void)
{
    /* GIVEN the first begins, the second begins, the first ends, the second ends */
    fresh_meter();
    struct pml_window first = {.devices = 0}, second = {.devices = 0};
    open_window(&first);
    pml_meter_move(PML_CPU, 300);
    pml_meter_move(PML_CPU, -200);
    /* WHEN */
    open_window(&second);
    pml_meter_move(PML_CPU, 50);
    pml_meter_move(PML_CPU, -50);
    close_window(&first);
    pml_meter_move(PML_CPU, 900);
    pml_meter_move(PML_CPU, -1000);
    close_window(&second);
    /* THEN */
    CHECK_INT(first.span[PML_CPU].peak[PML_ALLOCATED], 300);
    CHECK_INT(second.span[PML_CPU].peak[PML_ALLOCATED], 1000);
    CHECK_INT(second.span[PML_CPU].start.level[PML_ALLOCATED], 100);
}

static void an_unlinked_window_is_left_alone(void)
{
    fresh_meter();
    struct pml_window window = {.devices = 0}, other = {.devices = 0};
    open_window(&window);
    open_window(&other);
    close_window(&window);
    pml_meter_move(PML_CPU, 10);
    close_window(&other);
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], 0);
    CHECK_INT(other.span[PML_CPU].peak[PML_ALLOCATED], 10);
    CHECK_INT(linked_windows(), 0);
    CHECK_POINTER(window.next, &window);
}

static void a_device_that_appears_mid_window_began_with_nothing(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    memset(window.span, 0x55, sizeof window.span);
    open_window(&window);
    CHECK_INT(window.devices, 1);
    /* WHEN */
    report(2, 640, 640, MIB);
    close_window(&window);
    /* THEN */
    CHECK_INT(window.devices, 3);
    for (int m = 0; m < PML_METRICS; m++)
        CHECK_INT(window.span[2].start.level[m], 0);
    CHECK_INT(window.span[2].start.gross, 0);
    CHECK_INT(window.span[2].start.count, 0);
    CHECK_INT(window.span[2].peak[PML_ALLOCATED], 640);
    CHECK_INT(window.span[1].peak[PML_ALLOCATED], 0);
    CHECK_INT(window.span[1].start.level[PML_ALLOCATED], 0);
}

static void absorbing_takes_the_higher_of_each_metric(void)
{
    /* GIVEN */
    struct pml_window outer = {.devices = 1};
    outer.span[0] = (struct pml_span){.peak = {5, 9, 2}, .start = {{3, 2, 1}, 4, 1}};
    struct pml_window inner = {
        .devices = 2, .span = {{.peak = {7, 8, 2}, .start.level = {6}}, {.peak = {1, 2, 3}, .start.level = {9}}}};
    memset(&outer.span[1], 0x55, sizeof outer.span[1]);
    /* WHEN */
    pml_window_absorb(&outer, &inner);
    /* THEN */
    CHECK_INT(outer.devices, 2);
    CHECK_INT(outer.span[0].peak[PML_ACTIVE], 7);
    CHECK_INT(outer.span[0].peak[PML_ALLOCATED], 9);
    CHECK_INT(outer.span[0].start.level[PML_ACTIVE], 3);
    CHECK_INT(outer.span[0].start.level[PML_RESERVED], 1);
    CHECK_INT(outer.span[1].peak[PML_RESERVED], 3);
    CHECK_INT(outer.span[1].start.level[PML_ACTIVE], 0);
}

static void an_inner_window_with_fewer_devices_is_absorbed(void)
{
    struct pml_window outer = {.devices = 2, .span = {{.peak = {1, 1, 1}}, {.peak = {4, 4, 4}}}};
    struct pml_window inner = {.devices = 1, .span[0] = {.peak = {2, 2, 2}}};
    pml_window_absorb(&outer, &inner);
    CHECK_INT(outer.devices, 2);
    CHECK_INT(outer.span[0].peak[PML_ACTIVE], 2);
    CHECK_INT(outer.span[1].peak[PML_ACTIVE], 4);
}

static void a_fold_after_nothing_happened_touches_no_window(void)
{
    /* GIVEN all is folded */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    pml_meter_move(PML_CPU, 10);
    open_window(&window);
    window.span[PML_CPU].peak[PML_ALLOCATED] = -1;
    /* WHEN */
    fold();
    /* THEN */
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], -1);
    CHECK(!pml_meter_unfolded(PML_CPU));
    pml_window_unlink(&window);
}

static void an_adjusted_level_raises_the_peak(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    open_window(&window);
    /* WHEN */
    pml_meter_adjust(1, PML_RESERVED, 4 * MIB);
    pml_meter_adjust(1, PML_RESERVED, 2 * MIB);
    close_window(&window);
    /* THEN */
    struct pml_levels now;
    pml_meter_read(1, &now);
    CHECK_INT(now.level[PML_RESERVED], 2 * MIB);
    CHECK_INT(now.level[PML_ALLOCATED], 0);
    CHECK_INT(now.count, 0);
    CHECK_INT(window.span[1].peak[PML_RESERVED], 4 * MIB);
}

static void an_observation_brings_levels_and_the_peak_between(void)
{
    /* GIVEN */
    fresh_meter();
    struct pml_window window = {.devices = 0};
    const struct pml_levels now = {.level = {3, 2, 8}, .gross = 90, .count = 7};
    struct pml_levels read;
    open_window(&window);
    /* WHEN */
    pml_meter_observe(1, &now, (int64_t[]){50, 40, 80});
    close_window(&window);
    /* THEN */
    pml_meter_read(1, &read);
    CHECK_INT(read.level[PML_ALLOCATED], 2);
    CHECK_INT(read.gross, 90);
    CHECK_INT(read.count, 7);
    CHECK_INT(window.span[1].peak[PML_ACTIVE], 50);
    CHECK_INT(window.span[1].peak[PML_ALLOCATED], 40);
    CHECK_INT(window.span[1].peak[PML_RESERVED], 80);
}

static void a_level_is_a_peak_whatever_the_statistics_say(void)
{
    fresh_meter();
    struct pml_window window = {.devices = 0};
    const struct pml_levels now = {.level = {9, 9, 9}};
    open_window(&window);
    pml_meter_observe(1, &now, (int64_t[]){0, 0, 0});
    close_window(&window);
    CHECK_INT(window.span[1].peak[PML_ALLOCATED], 9);
}

static void forgotten_windows_are_not_raised(void)
{
    fresh_meter();
    struct pml_window window = {.devices = 0};
    open_window(&window);
    pml_window_forget_all();
    pml_meter_move(PML_CPU, 10);
    fold();
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], 0);
    CHECK_INT(linked_windows(), 0);
    /* a forgotten window may be unlinked again, whatever has been opened since */
    struct pml_window later = {.devices = 0};
    open_window(&later);
    pml_window_unlink(&window);
    CHECK_INT(linked_windows(), 1);
    close_window(&later);
    CHECK_INT(linked_windows(), 0);
}

/* ---- random windows against a naive model: the history of all levels ---- */

#define STEPS 400
#define DEVICES 5
#define WINDOWS 6

static struct {
    int now;
    struct pml_levels at[STEPS + 1][DEVICES];
} history;

static struct {
    bool open;
    int start;
    struct pml_window window;
} model[WINDOWS];

static int64_t highest(int device, int metric, int from)
{
    int64_t peak = history.at[from][device].level[metric];
    for (int i = from; i <= history.now; i++)
        if (peak < history.at[i][device].level[metric])
            peak = history.at[i][device].level[metric];
    return peak;
}

static void change_device(struct check_random *random)
{
    int device = random_below(random, DEVICES);
    struct pml_levels *now = history.at[history.now + 1];
    memcpy(now, history.at[history.now], sizeof history.at[0]);
    history.now++;
    int64_t size = random_below(random, 1000) - (now[device].level[PML_ALLOCATED] > 2000 ? 700 : 300);
    if (size < -now[device].level[PML_ALLOCATED])
        size = -now[device].level[PML_ALLOCATED];
    now[device].level[PML_ALLOCATED] += size;
    now[device].gross += size > 0 ? size : 0;
    now[device].count += size > 0;
    if (device == PML_CPU) {
        pml_meter_move(device, size);
        return;
    }
    now[device].level[PML_ACTIVE] = now[device].level[PML_ALLOCATED] + random_below(random, 200);
    now[device].level[PML_RESERVED] = now[device].level[PML_ACTIVE] + random_below(random, 500);
    pml_meter_set(device, size, now[device].level);
}

static void compare_window(int i)
{
    const struct pml_window *window = &model[i].window;
    for (int d = 0; d < window->devices && d < DEVICES; d++) {
        for (int m = 0; m < PML_METRICS; m++) {
            CHECK_INT(window->span[d].peak[m], highest(d, m, model[i].start));
            CHECK_INT(window->span[d].start.level[m], history.at[model[i].start][d].level[m]);
        }
        CHECK_INT(window->span[d].start.gross, history.at[model[i].start][d].gross);
        CHECK_INT(window->span[d].start.count, history.at[model[i].start][d].count);
    }
    for (int d = window->devices; d < DEVICES; d++)
        CHECK(!pml_meter_used(d));
}

static void change_window(struct check_random *random)
{
    int i = random_below(random, WINDOWS);
    if (!model[i].open) {
        open_window(&model[i].window);
        model[i].start = history.now;
    } else {
        close_window(&model[i].window);
        compare_window(i);
    }
    model[i].open = !model[i].open;
}

static void windows_at_random(struct check_random *random)
{
    fresh_meter();
    memset(&history, 0, sizeof history);
    memset(model, 0, sizeof model);
    while (history.now < STEPS) {
        if (random_below(random, 4) == 0)
            change_window(random);
        else
            change_device(random);
        if (random_below(random, 10) == 0)
            fold();
    }
    for (int i = 0; i < WINDOWS; i++)
        if (model[i].open) {
            close_window(&model[i].window);
            compare_window(i);
        }
    CHECK_INT(linked_windows(), 0);
}

static void windows_agree_with_the_naive_model(void)
{
    check_seeds(windows_at_random, 300);
}

int main(void)
{
    RUN(a_move_changes_allocated_alone);
    RUN(a_set_carries_the_totals);
    RUN(events_tick_and_tell_which_device_is_used);
    RUN(a_touch_ticks_but_uses_no_device);
    RUN(the_last_device_fits);
    RUN(a_peak_between_two_folds_is_kept);
    RUN(an_earlier_peak_is_not_the_windows);
    RUN(a_window_without_events_peaks_at_its_start);
    RUN(a_peak_in_an_inner_window_is_the_outer_ones_too);
    RUN(overlapping_windows_each_see_their_own);
    RUN(an_unlinked_window_is_left_alone);
    RUN(a_device_that_appears_mid_window_began_with_nothing);
    RUN(absorbing_takes_the_higher_of_each_metric);
    RUN(an_inner_window_with_fewer_devices_is_absorbed);
    RUN(a_fold_after_nothing_happened_touches_no_window);
    RUN(an_adjusted_level_raises_the_peak);
    RUN(an_observation_brings_levels_and_the_peak_between);
    RUN(a_level_is_a_peak_whatever_the_statistics_say);
    RUN(forgotten_windows_are_not_raised);
    RUN(windows_agree_with_the_naive_model);
    return check_report();
}
