/* Locks are taken in one order (lock_order.h), which the tests' build checks: each way here takes several of them, and
 * stops the program if it takes them in another order.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "ledger_world.h"
#include "base/lock_order.h"
#include "meter/cpu_blocks.h"
#include "meter/stream_pending.h"
#include "saved/all_locks.h"
#include "saved/saved_tables.h"

static char memory[8];

static void *as_autograd(void *way)
{
    prctl(PR_SET_NAME, "pt_autograd_0");
    (*(void (**)(void))way)();
    return NULL;
}

/* On a thread that PyTorch's backward pass runs on. */
static void run_in_backward(void (*way)(void))
{
    pthread_t thread;
    pthread_create(&thread, NULL, as_autograd, &way);
    pthread_join(thread, NULL);
}

static void unsubscribe(int r, int c)
{
    pml_saved_tables_lock(); /* as tracer.c does */
    pml_codes_unsubscribe(&key[c], &subscriber[r][c]);
    pml_saved_tables_unlock();
    pml_line_table_free(subscriber[r][c].table);
    pml_saved_tables_release(subscriber[r][c].saved);
    subscriber[r][c] = (struct pml_subscriber){.table = NULL};
}

/* A function whose line 3 runs, has a block of a device, and saves for backward. */
static void begin_line(struct pml_frame_stack *stack)
{
    fresh_holders();
    pml_saved_tables_follow(true);
    subscribe(1, 0);
    subscriber[1][0].saved = pml_saved_tables_new(FIRST, LINES - 1, 1);
    begin(1, NULL);
    call(stack, id, 0, FIRST);
    line_event(stack, 3);
    allocate(1, 0, 100);
    allocate(PML_CPU, 1, 10);
}

static void end_line(struct pml_frame_stack *stack)
{
    pml_frame_stack_cut(stack, 0);
    pml_frame_stack_free(stack);
    end(1, stack);
    pml_saved_tables_release(subscriber[1][0].saved);
    pml_saved_tables_follow(false);
    clear_holders();
}

static void a_function_goes_while_its_line_owns_blocks(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_line(&stack);
    release(1, 0, 100);
    release(PML_CPU, 1, 10);
    pml_frame_stack_cut(&stack, 0);
    unsubscribe(1, 0);
    CHECK_POINTER(pml_codes_find(&key[0]), NULL);
    end_line(&stack);
}

static void save_in_backward(void)
{
    pml_saved_tables_note(&(struct pml_saved_tensor){.storage = memory, .bytes = 50, .device = 1, .backward = true});
}

static void backward_saves_for_the_line_that_waits(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    struct pml_saved_figures figures;
    begin_line(&stack);
    run_in_backward(save_in_backward);
    CHECK(pml_saved_tables_read(subscriber[1][0].saved, 3, 1, &figures));
    CHECK_INT(figures.peak[PML_SAVED_BACKWARD] + figures.peak[PML_SAVED_INPUT], 50);
    unsubscribe(1, 0);
    end_line(&stack);
}

static void allocate_in_backward(void)
{
    allocate(1, 2, 7);
    allocate(PML_CPU, 3, 7);
}

static void backward_allocates_for_the_line_that_waits(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_line(&stack);
    run_in_backward(allocate_in_backward);
    CHECK_INT(held_in_all(1, 1), 107);
    CHECK_INT(held_in_all(1, PML_CPU), 17);
    end_line(&stack);
}

static void memory_runs_out(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_line(&stack);
    pml_failures_note(1, 1 << 20, -1, -1);
    CHECK_INT(pml_failures_count(taken[1]), 1);
    end_line(&stack);
}

static void blocks_wait_for_streams(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    begin_line(&stack);
    pml_stream_pending_recorded(&memory[1]);
    release(1, 0, 100);
    pml_ledger_correct_pending(1, 0);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
    end_line(&stack);
}

static void a_fork_holds_all(void)
{
    pml_all_locks_take();
    pid_t child = fork();
    pml_all_locks_give();
    if (child == 0)
        _exit(pml_cpu_blocks_count() == 0 && pml_saved_tables_blocks() == 0 ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
}

/* ---- what the check finds ---- */

static bool stops(void (*way)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGILL, SIG_DFL); /* not a sanitizer's report */
        signal(SIGTRAP, SIG_DFL);
        way();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static void in_order(void)
{
    pml_saved_tables_lock();
    pml_ledger_lock(1);
    pml_ledger_unlock(1);
    pml_saved_tables_unlock();
}

static void saved_after_a_device(void)
{
    pml_ledger_lock(1);
    pml_saved_tables_lock();
}

static void devices_downwards(void)
{
    pml_ledger_lock(2);
    pml_ledger_lock(1);
}

static void places_before_owners(void)
{
    pml_thread_line_lock();
    pml_owners_lock();
}

static void given_without_being_held(void)
{
    pml_ledger_unlock(1);
}

static void another_order_is_found(void)
{
    CHECK(!stops(in_order));
    CHECK(stops(saved_after_a_device));
    CHECK(stops(devices_downwards));
    CHECK(stops(places_before_owners));
    CHECK(stops(given_without_being_held));
}

int main(void)
{
    RUN(another_order_is_found);
    RUN(a_fork_holds_all);
    RUN(a_function_goes_while_its_line_owns_blocks);
    RUN(backward_saves_for_the_line_that_waits);
    RUN(backward_allocates_for_the_line_that_waits);
    RUN(memory_runs_out);
    RUN(blocks_wait_for_streams);
    return check_report();
}
