/* Who holds the peak: lines, other profilers' frames, autograd's threads, streams, starts and stops; then random
 * programs against a naive model.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "ledger_world.h"
#include "meter/stream_pending.h"

static void a_line_holds_what_it_allocated_at_the_highest_moment(void)
{
    /* GIVEN */
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    allocate(1, 9, 7); /* before */
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    /* WHEN */
    line_event(&stack, 3);
    allocate(1, 0, 100);
    line_event(&stack, 4);
    allocate(1, 1, 50);
    release(1, 0, 100);
    line_event(&stack, 5);
    allocate(1, 2, 20);
    return_event(&stack);
    allocate(1, 3, 1000); /* after */
    /* THEN */
    CHECK_INT(peak_of(0, 1), 157);
    CHECK_INT(owner_bytes_of(0, 1, 0, 3), 100);
    CHECK_INT(owner_bytes_of(0, 1, 0, 4), 50);
    CHECK_INT(owner_bytes_of(0, 1, 0, 5), 0);
    CHECK_INT(held_in_all(0, 1), 150); /* 7 bytes are older */
    CHECK_INT(peak_of(0, PML_CPU), -1);
    pml_frame_stack_free(&stack);
    end(0, &stack);
    CHECK_INT(owner_bytes_of(0, 1, 0, 3), 100);
    clear_holders();
}

/* What a line holds: now, and with what went only because functions ended. */
static void check_line(int line, int64_t live, int64_t end)
{
    int64_t live_now, end_now;
    pml_ledger_of_line(1, pml_codes_find(&key[0]), line, &live_now, &end_now);
    CHECK_INT(live_now, live);
    CHECK_INT(end_now, end);
}

static void what_goes_as_functions_end_is_told_apart(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    allocate(1, 1, 40);
    allocate(1, 2, 5);
    line_event(&stack, 4);
    allocate(1, 3, 9);
    /* WHEN: a function returns, then its caller goes on */
    pml_ledger_set_phase(PML_ENDING);
    release(1, 0, 100);
    pml_ledger_set_phase(PML_RUNNING);
    release(1, 1, 40);
    /* THEN */
    check_line(3, 5, 105);
    check_line(4, 9, 9);
    /* AND it is counted anew when the line runs again */
    line_event(&stack, 3);
    check_line(3, 5, 5);
    finish(1, &stack);
}

/* Functions of this thread begin and end. */
static void *run_functions(void *unused)
{
    pml_ledger_set_phase(PML_ENDING);
    pml_ledger_set_phase(PML_RUNNING);
    release(1, 2, 5);
    return unused;
}

static void what_other_threads_run_meanwhile_changes_nothing(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    pthread_t thread;
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    allocate(1, 1, 40);
    allocate(1, 2, 5);
    line_event(&stack, 4);
    /* WHEN: the variables of a function go on one thread while another one goes on */
    pml_ledger_set_phase(PML_ENDING);
    release(1, 0, 100);
    CHECK(pthread_create(&thread, NULL, run_functions, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    release(1, 1, 40);
    pml_ledger_set_phase(PML_RUNNING);
    /* THEN: what the other thread gave back was not kept */
    check_line(3, 0, 140);
    finish(1, &stack);
}

static void what_goes_after_the_last_function_was_kept_until_then(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    allocate(1, 1, 40);
    line_event(&stack, 4);
    /* WHEN */
    pml_ledger_set_phase(PML_UNWATCHED);
    release(1, 0, 100);
    check_line(3, 40, 140);
    /* THEN: only as long as nothing else is watched */
    pml_ledger_set_phase(PML_RUNNING);
    check_line(3, 40, 40);
    pml_ledger_set_phase(PML_UNWATCHED);
    release(1, 1, 40);
    check_line(3, 0, 40);
    pml_ledger_set_phase(PML_RUNNING);
    finish(1, &stack);
}

/* What a line holds as it begins, and what of that is older than its last run. */
static void check_begin(int line, int64_t live, int64_t old)
{
    struct pml_code *code = pml_codes_find(&key[0]);
    int64_t live_now, old_now;
    pml_ledger_begin_line(1, pml_owners_of_line(code, line), code->since, &live_now, &old_now);
    CHECK_INT(live_now, live);
    CHECK_INT(old_now, old);
}

static void what_a_line_holds_as_it_begins(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    check_begin(3, -1, 0);
    allocate(1, 0, 100);
    check_begin(3, 100, 0);
    check_begin(3, 100, 100); /* its last run took none */
    allocate(1, 1, 40);
    allocate(1, 2, 7);
    release(1, 0, 100);
    release(1, 2, 7);
    check_begin(3, 40, 0);
    allocate(1, 0, 100);
    release(1, 1, 40);
    check_begin(3, 100, 0);
    allocate(1, 1, 1);
    check_begin(3, 101, 100);
    pml_ledger_follow_accelerators(false);
    check_begin(3, -1, 0);
    pml_ledger_follow_accelerators(true);
    check_begin(3, 0, 0);
    finish(1, &stack);
}

static void the_value_when_a_function_begins_counts(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    allocate(1, 0, 500);
    call(&stack, id, 0, FIRST);
    release(1, 0, 500);
    return_event(&stack);
    CHECK_INT(peak_of(0, 1), 500);
    CHECK_INT(held_in_all(0, 1), 0);
    finish(1, &stack);
}

/* Profiler 0 counts the outer function, profiler 1 the inner one: each finds its own innermost line. */
static void overlapping_profilers_each_have_their_own_lines_and_peak(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(1, 1);
    begin(0, NULL);
    begin(1, NULL);
    call(&stack, &id[0], 0, FIRST);
    line_event(&stack, 3);
    call(&stack, &id[1], 1, FIRST);
    line_event(&stack, 6);
    allocate(1, 0, 100);
    return_event(&stack);
    line_event(&stack, 4);
    allocate(1, 1, 30); /* while the inner one does not run */
    return_event(&stack);
    CHECK_INT(peak_of(0, 1), 130);
    CHECK_INT(owner_bytes_of(0, 1, 0, 3), 100);
    CHECK_INT(owner_bytes_of(0, 1, 0, 4), 30);
    CHECK_INT(peak_of(1, 1), 100);
    CHECK_INT(owner_bytes_of(1, 1, 1, 6), 100);
    finish(2, &stack);
}

static int owners_of(int c)
{
    const struct pml_code *code = pml_codes_find(&key[c]);
    int owners = 0;
    for (int i = 0; i < code->owners; i++)
        for (const struct pml_owner *owner = code->owner[i]; owner; owner = owner->next)
            owners++;
    return owners;
}

static void recursion_makes_no_more_owners_than_there_are_lines(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(1, 1);
    begin(0, NULL);
    begin(1, NULL);
    for (int depth = 0; depth < 40; depth++) { /* two functions that call each other, of two profilers */
        call(&stack, &id[depth], depth % 2, FIRST);
        line_event(&stack, 5);
        allocate(1, depth, 10);
    }
    CHECK_BETWEEN(1, owners_of(0), 8);
    CHECK_BETWEEN(1, owners_of(1), 8);
    CHECK_INT(owner_bytes_of(0, 1, 0, 5), 400); /* each block has both functions around it, but for the first */
    CHECK_INT(owner_bytes_of(1, 1, 1, 5), 390);
    finish(2, &stack);
}

static void profilers_that_share_a_picture_take_one(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(1, 1);
    begin(0, NULL);
    begin(1, &picture[0]);
    call(&stack, &id[0], 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 10);
    call(&stack, &id[1], 1, FIRST);
    line_event(&stack, 6);
    allocate(1, 1, 5);
    return_event(&stack);
    return_event(&stack);
    CHECK_INT(peak_of(1, 1), 15);
    CHECK_INT(owner_bytes_of(1, 1, 0, 3), 10);
    CHECK_INT(owner_bytes_of(1, 1, 1, 6), 5);
    end(0, &stack);
    CHECK_INT(picture[0].recorders, 1);
    end(1, &stack);
    CHECK_INT(picture[0].group, -1);
    CHECK(pml_ledger_idle() == false); /* blocks live */
    pml_frame_stack_free(&stack);
    clear_holders();
    CHECK(pml_ledger_idle());
}

static void stopped_pictures_stay_and_go_on(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    for (int run = 0; run < 3; run++) { /* 100, 300, then 200 bytes */
        begin(0, NULL);
        call(&stack, id, 0, FIRST);
        line_event(&stack, 3 + run);
        allocate(1, 0, (int64_t[]){100, 300, 200}[run]);
        return_event(&stack);
        end(0, &stack);
        release(1, 0, (int64_t[]){100, 300, 200}[run]);
    }
    CHECK_INT(peak_of(0, 1), 300);
    CHECK_INT(owner_bytes_of(0, 1, 0, 4), 300);
    pml_picture_recording_clear(&picture[0]);
    CHECK_INT(peak_of(0, 1), -1);
    pml_frame_stack_free(&stack);
    clear_holders();
}

static void blocks_that_are_older_than_a_profiler_are_not_its_lines(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(1, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    return_event(&stack);
    begin(1, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 1, 40);
    return_event(&stack);
    CHECK_INT(owner_bytes_of(0, 1, 0, 3), 140);
    CHECK_INT(peak_of(1, 1), 140);
    CHECK_INT(owner_bytes_of(1, 1, 0, 3), 40);
    /* its own blocks stay its own when it stops and starts */
    end(1, &stack);
    begin(1, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 4);
    allocate(1, 2, 5);
    return_event(&stack);
    CHECK_INT(owner_bytes_of(1, 1, 0, 3), 40);
    CHECK_INT(owner_bytes_of(1, 1, 0, 4), 5);
    finish(2, &stack);
}

static void profilers_that_come_and_go_leave_no_owners_behind(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(1, 0); /* keeps the code object known */
    for (int run = 0; run < 100; run++) {
        picture[0] = (struct pml_peak_picture){.group = -1};
        begin(0, NULL);
        call(&stack, id, 0, FIRST);
        line_event(&stack, 3);
        allocate(1, 0, 100);
        release(1, 0, 100);
        return_event(&stack);
        end(0, &stack);
        pml_picture_recording_clear(&picture[0]);
    }
    CHECK_BETWEEN(1, owners_of(0), 2);
    pml_frame_stack_free(&stack);
    clear_holders();
}

/* Lines whose code is gone are given back once their blocks are. */
static void owners_of_code_that_is_gone_go_with_their_blocks(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    struct pml_owner *owner = pml_frame_stack_top(&stack)->owner;
    return_event(&stack); /* its report is counted */
    int index = owner->index;
    end(0, &stack);
    unsubscribe_all();
    CHECK_POINTER(pml_owners_by_index(index), owner);
    CHECK_POINTER(owner->code, NULL);
    release(1, 0, 100);
    subscribe(0, 1); /* another code object comes and goes */
    begin(0, NULL);
    call(&stack, id, 1, FIRST);
    return_event(&stack);
    end(0, &stack);
    unsubscribe_all();
    CHECK_POINTER(pml_owners_by_index(index), NULL);
    pml_frame_stack_free(&stack);
    clear_holders();
}

static void waiting_for_streams_is_holding(void)
{
    static char event;
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    /* WHEN it is freed, but a stream still uses it */
    pml_stream_pending_recorded(&event);
    release(1, 0, 100);
    line_event(&stack, 4);
    allocate(1, 1, 60);
    /* THEN both are held */
    CHECK_INT(peak_of(0, 1), 160);
    CHECK_INT(owner_bytes_of(0, 1, 0, 3), 100);
    CHECK_INT(owner_bytes_of(0, 1, 0, 4), 60);
    /* WHEN the stream is done and more comes */
    pml_ledger_event_done(&event);
    pml_ledger_adjust(1, PML_ACTIVE, 1000);
    CHECK_INT(owner_bytes_of(0, 1, 0, 3), 0);
    CHECK_INT(owner_bytes_of(0, 1, 0, 4), 60);
    finish(1, &stack);
    pml_stream_pending_correct(1, 0, NULL);
}

static void *allocate_as(void *name)
{
    prctl(PR_SET_NAME, (const char *)name);
    allocate(1, ((const char *)name)[0], 100);
    return NULL;
}

static void on_a_thread_named(const char *name)
{
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_as, (void *)(uintptr_t)name);
    pthread_join(thread, NULL);
}

static void autograds_threads_are_charged_to_the_line_that_waits(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    on_a_thread_named("pt_autograd_0");
    on_a_thread_named("worker");
    struct pml_peak copy;
    CHECK(pml_picture_recording_copy(&picture[0], 1, &copy));
    CHECK_INT(copy.peak, 200);
    CHECK_INT(owner_bytes(&copy.list, &key[0], 3, PML_OWNER_BACKWARD), 100);
    CHECK_INT(copy.list.count, 1);
    free(copy.list.holder);
    finish(1, &stack);
}

static struct pml_frame_stack other_stack;

static void *run_other_line(void *barrier)
{
    call(&other_stack, &id[9], 0, FIRST);
    line_event(&other_stack, 4);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    pml_frame_stack_free(&other_stack);
    return NULL;
}

static void with_several_lines_that_may_wait_none_is_charged(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    pthread_barrier_t barrier;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    pthread_create(&thread, NULL, run_other_line, &barrier);
    pthread_barrier_wait(&barrier);
    on_a_thread_named("pt_autograd_1");
    struct pml_peak copy;
    CHECK(pml_picture_recording_copy(&picture[0], 1, &copy));
    CHECK_INT(owner_bytes(&copy.list, NULL, 0, PML_OWNER_AUTOGRAD), 100);
    free(copy.list.holder);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    finish(1, &stack);
}

static void more_profilers_than_there_are_groups_are_told(void)
{
    static struct pml_peak_picture many[PML_MAX_GROUPS + 1];
    static struct pml_recorder alone[PML_MAX_GROUPS + 1];
    for (int i = 0; i <= PML_MAX_GROUPS; i++) {
        many[i] = (struct pml_peak_picture){.group = -1};
        pml_picture_recording_start(&many[i], &alone[i]);
        CHECK_INT(many[i].failed, i == PML_MAX_GROUPS);
    }
    for (int i = 0; i <= PML_MAX_GROUPS; i++)
        pml_picture_recording_stop(&many[i], &alone[i]);
    CHECK(pml_ledger_idle());
}

static void a_failed_allocation_is_told_with_who_holds_what(void)
{
    fresh_holders();
    struct pml_frame_stack stack = {.depth = 0};
    struct pml_failure failure;
    subscribe(0, 0);
    begin(0, NULL);
    pml_failures_note(1, 5, 0, 0); /* no function runs */
    CHECK_INT(pml_failures_count(&picture[0]), 1);
    CHECK(pml_failures_get(&picture[0], 0, &failure));
    CHECK(!failure.at.code);
    pml_failures_clear(&picture[0]);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    allocate(1, 0, 100);
    line_event(&stack, 4);
    for (int i = 0; i < PML_MOST_FAILURES + 5; i++) {
        pml_failures_note_capacity(11, 1000);
        pml_failures_note(1, 5000 + i, 100, 800);
    }
    pml_failures_note(PML_CPU, 1, -1, -1);
    CHECK_INT(pml_failures_count(&picture[0]), PML_MOST_FAILURES + 6);
    CHECK(!pml_failures_get(&picture[0], PML_MOST_FAILURES, &failure));
    CHECK(pml_failures_get(&picture[0], PML_MOST_FAILURES - 1, &failure));
    CHECK_INT(failure.asked, 5000 + PML_MOST_FAILURES - 1);
    CHECK_INT(failure.allocated, 100);
    CHECK_INT(failure.active, 100);
    CHECK_INT(failure.reserved, 800);
    CHECK_INT(failure.unused, 11);
    CHECK_INT(failure.total, 1000);
    CHECK_INT(failure.at.line, 4);
    CHECK_INT(owner_bytes(&failure.list, &key[0], 3, PML_OWNER_LINE), 100);
    forget_figures(0, &stack);
    CHECK_INT(pml_failures_count(&picture[0]), 0);
    finish(1, &stack);
}

int main(void)
{
    RUN(a_line_holds_what_it_allocated_at_the_highest_moment);
    RUN(what_goes_as_functions_end_is_told_apart);
    RUN(what_other_threads_run_meanwhile_changes_nothing);
    RUN(what_goes_after_the_last_function_was_kept_until_then);
    RUN(what_a_line_holds_as_it_begins);
    RUN(the_value_when_a_function_begins_counts);
    RUN(overlapping_profilers_each_have_their_own_lines_and_peak);
    RUN(recursion_makes_no_more_owners_than_there_are_lines);
    RUN(profilers_that_share_a_picture_take_one);
    RUN(stopped_pictures_stay_and_go_on);
    RUN(blocks_that_are_older_than_a_profiler_are_not_its_lines);
    RUN(profilers_that_come_and_go_leave_no_owners_behind);
    RUN(owners_of_code_that_is_gone_go_with_their_blocks);
    RUN(waiting_for_streams_is_holding);
    RUN(autograds_threads_are_charged_to_the_line_that_waits);
    RUN(with_several_lines_that_may_wait_none_is_charged);
    RUN(more_profilers_than_there_are_groups_are_told);
    RUN(a_failed_allocation_is_told_with_who_holds_what);
    return check_report();
}
