/* What a line held over its runs: stretches of equal width, by run and by call, and statements that come back to a
 * line. */
#include "check.h"
#include "lines/growth.h"

static struct pml_growth growth;
static uint64_t pass;

static void fresh(void)
{
    growth = (struct pml_growth){.call = 0};
    pass = 0;
}

static void run(int64_t held, int64_t old, uint64_t call)
{
    pml_growth_add(&growth, held, old, call, ++pass);
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
            run(1000 + i, i, 1);
        /* THEN */
        const struct pml_history *h = &growth.runs;
        int64_t width = 1;
        while ((runs + width - 1) / width > PML_STRETCHES)
            width *= 2;
        CHECK_INT(h->width, width);
        CHECK_INT(stretches(h), (runs + width - 1) / width);
        for (int i = 0; i < stretches(h); i++) {
            int64_t before = i * width, inside = i < stretches(h) - 1 ? width : runs - before;
            CHECK_INT(stretch_of_runs(i)->samples, inside);
            CHECK_INT(stretch_of_runs(i)->runs, inside);
            CHECK_INT(stretch_of_runs(i)->held, 1000 + before);
            CHECK_INT(stretch_of_runs(i)->old, before);
        }
    }
}

static void lows_are_the_lowest_of_a_stretch(void)
{
    fresh();
    for (int i = 0; i < 32; i++)
        run(i % 2 ? 5 : 50, i % 2 ? 40 : 4, 1);
    CHECK_INT(stretches(&growth.runs), PML_STRETCHES);
    for (int i = 0; i < 16; i++) {
        CHECK_INT(stretch_of_runs(i)->held, 5);
        CHECK_INT(stretch_of_runs(i)->old, 4);
    }
}

static void a_call_counts_once_with_its_first_run(void)
{
    /* GIVEN three calls of two runs each */
    fresh();
    for (int i = 0; i < 6; i++)
        run(100 * i, 10 * i, 1 + i / 2);
    /* THEN */
    CHECK_INT(stretches(&growth.calls), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(stretch_of_calls(i)->samples, 1);
        CHECK_INT(stretch_of_calls(i)->runs, 2);
        CHECK_INT(stretch_of_calls(i)->held, 200 * i);
        CHECK_INT(stretch_of_calls(i)->old, 20 * i);
    }
    CHECK_INT(stretches(&growth.runs), 6);
}

static void runs_of_calls_are_added_up(void)
{
    /* GIVEN forty calls of three runs each: stretches of four calls */
    fresh();
    for (int i = 0; i < 120; i++)
        run(i, i, 1 + i / 3);
    /* THEN */
    CHECK_INT(growth.calls.width, 4);
    CHECK_INT(stretches(&growth.calls), 10);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(stretch_of_calls(i)->samples, 4);
        CHECK_INT(stretch_of_calls(i)->runs, 12);
        CHECK_INT(stretch_of_calls(i)->held, 12 * i);
    }
}

static void a_statement_that_comes_back_to_its_line_is_one_run(void)
{
    fresh();
    run(100, 0, 1);
    pml_growth_add(&growth, 120, 20, 1, pass);
    run(200, 100, 1);
    CHECK_INT(stretches(&growth.runs), 2);
    CHECK_INT(stretch_of_runs(0)->runs, 1);
    CHECK_INT(stretch_of_runs(0)->held, 100);
    CHECK_INT(growth.calls.open.runs, 2);
}

int main(void)
{
    RUN(every_run_is_in_one_stretch);
    RUN(lows_are_the_lowest_of_a_stretch);
    RUN(a_call_counts_once_with_its_first_run);
    RUN(runs_of_calls_are_added_up);
    RUN(a_statement_that_comes_back_to_its_line_is_one_run);
    return check_report();
}
