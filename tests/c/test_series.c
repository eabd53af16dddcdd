/* The value over a run: bounded, in order, each point the highest of its stretch. */
#include "check.h"
#include "base/series.h"

static struct pml_series series;

static void few_values_are_all_there(void)
{
    series = (struct pml_series){.used = 0};
    for (int i = 0; i < PML_SERIES_POINTS; i++)
        pml_series_add(&series, i * 3);
    CHECK_INT(series.used, PML_SERIES_POINTS);
    CHECK_INT(series.step, 1);
    for (int i = 0; i < PML_SERIES_POINTS; i++)
        CHECK_INT(series.value[i], i * 3);
}

static void many_values_are_the_highest_of_their_stretches(struct check_random *random)
{
    static int64_t all[100000];
    int count = 1 + random_below(random, 100000);
    series = (struct pml_series){.used = 0};
    for (int i = 0; i < count; i++) {
        all[i] = random_below(random, 1 << 30);
        pml_series_add(&series, all[i]);
    }
    CHECK(series.used <= PML_SERIES_POINTS);
    CHECK_INT((count + series.step - 1) / series.step, series.used);
    for (int p = 0; p < series.used; p++) {
        int64_t highest = 0;
        for (int64_t i = p * series.step; i < (p + 1) * series.step && i < count; i++)
            highest = all[i] > highest ? all[i] : highest;
        CHECK_INT(series.value[p], highest);
    }
}

int main(void)
{
    RUN(few_values_are_all_there);
    check_state.test = "many_values_are_the_highest_of_their_stretches";
    check_seeds(many_values_are_the_highest_of_their_stretches, 50);
    return check_report();
}
