/* A line's later runs: stretches of equal width, levels by run and by outermost call, what was freed in between. */
#include "check.h"
#include "lines/growth.h"

static struct pml_growth growth;
static int64_t freed;

static void fresh(void)
{
    growth = (struct pml_growth){.live = false};
    freed = 0;
}

/* A run that begins at `level`, of which the line holds `live`, takes `net`, and frees `gone` in between. */
static void run(bool first, int64_t level, int64_t live, int64_t net, int64_t gone, uint64_t call)
{
    freed += gone;
    int64_t end = level + net;
    struct pml_span span = {
        .start.level = {level, level, 10 * level},
        .end = {.level = {end, end, 10 * level + 7}, .gross = end + freed},
        .end_ticks = 1,
        .live = live,
    };
    pml_growth_add(&growth, first, &span, call);
}

static int stretches(const struct pml_history *history)
{
    return history->closed + 1;
}

static const struct pml_stretch *stretch_of_runs(int i)
{
    return i < growth.runs.closed ? &growth.closed_runs[i] : &growth.runs.open;
}

static const struct pml_stretch *stretch_of_calls(int i)
{
    return i < growth.calls.closed ? &growth.closed_calls[i] : &growth.calls.open;
}

static void every_run_is_in_one_stretch(void)
{
    for (int64_t runs = 1; runs < 2000; runs = runs * 3 / 2 + 1) {
        /* WHEN */
        fresh();
        for (int64_t i = 0; i < runs; i++)
            run(i == 0, 1000 + i, -1, 3, 0, 1);
        /* THEN */
        const struct pml_history *h = &growth.runs;
        int64_t width = 1;
        while ((runs + width - 1) / width > PML_STRETCHES)
            width *= 2;
        CHECK_INT(h->width, width);
        CHECK_INT(stretches(h), (runs + width - 1) / width);
        for (int i = 0; i < stretches(h); i++) {
            int64_t before = i * width, inside = i < stretches(h) - 1 ? width : runs - before;
            CHECK_INT(stretch_of_runs(i)->runs, inside);
            CHECK_INT(stretch_of_runs(i)->low, 1000 + before);
            CHECK_INT(stretch_of_runs(i)->level_low, 1000 + before);
            CHECK_INT(stretch_of_runs(i)->reserved_low, 10 * (1000 + before) + 7);
            CHECK_INT(stretch_of_runs(i)->net, 3 * inside);
            CHECK_INT(stretch_of_runs(i)->reserved_net, 7 * inside);
        }
    }
}

static void lows_are_the_lowest_of_a_stretch(void)
{
    fresh();
    for (int i = 0; i < 32; i++)
        run(i == 0, 100, i % 2 ? 5 : 50, 0, 0, 1);
    for (int i = 0; i < 16; i++)
        CHECK_INT(stretch_of_runs(i)->low, 5);
    CHECK(growth.live);
}

static void one_unknown_run_makes_all_unknown(void)
{
    fresh();
    run(true, 100, 5, 0, 0, 1);
    CHECK(growth.live);
    run(false, 100, -1, 0, 0, 1);
    run(false, 100, 5, 0, 0, 1);
    CHECK(!growth.live);
}

static void a_call_counts_once_with_its_first_level(void)
{
    /* GIVEN three calls of two runs each */
    fresh();
    for (int i = 0; i < 6; i++)
        run(i == 0, 100 * i, -1, 10, 0, 1 + i / 2);
    /* THEN */
    CHECK_INT(stretches(&growth.calls), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(stretch_of_calls(i)->runs, 1);
        CHECK_INT(stretch_of_calls(i)->low, 200 * i);
        CHECK_INT(stretch_of_calls(i)->net, 20);
    }
    CHECK_INT(stretches(&growth.runs), 6);
}

static void the_largest_gap(void)
{
    fresh();
    run(true, 0, -1, -50, 1000, 1);
    CHECK_INT(growth.freed_gap, 0);
    run(false, 0, -1, 30, 40, 1);
    run(false, 0, -1, -5, 20, 1);
    CHECK_INT(growth.freed_gap, 40);
    CHECK_INT(growth.freed, 1060);
    CHECK_INT(growth.gross_first, 950);
    CHECK_INT(growth.gross, 1055);
}

int main(void)
{
    RUN(every_run_is_in_one_stretch);
    RUN(lows_are_the_lowest_of_a_stretch);
    RUN(one_unknown_run_makes_all_unknown);
    RUN(a_call_counts_once_with_its_first_level);
    RUN(the_largest_gap);
    return check_report();
}
