/* Accelerators' reports on several threads, while others read the figures or owners go away. */
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ledger_world.h"

enum { THREADS = 4, STEPS = 20000 };

static struct pml_levels levels_of(int device)
{
    struct pml_levels now;
    pml_meter_read(device, &now);
    return now;
}

static pthread_mutex_t allocator[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static _Atomic int running;

static void *report_much(void *argument)
{
    int number = *(const int *)argument, device = 1 + number % 2;
    for (int step = 0; step < STEPS; step++) {
        pthread_mutex_lock(&allocator[device - 1]);
        event(device, number, step % 2 ? -64 : 64);
        pthread_mutex_unlock(&allocator[device - 1]);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void threads_and_looks_at_once(void)
{
    pthread_t thread[THREADS];
    static int number[THREADS];
    struct pml_window window = {.devices = 0};
    fresh_holders();
    open_window(&window);
    atomic_store(&running, THREADS);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        pthread_create(&thread[i], NULL, report_much, &number[i]);
    }
    while (atomic_load(&running)) {
        pml_ledger_fold();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    close_window(&window);
    for (int device = 1; device <= 2; device++) {
        CHECK_INT(levels_of(device).level[PML_ALLOCATED], 0);
        CHECK_INT(levels_of(device).gross, THREADS / 2 * (STEPS / 2) * 64);
        CHECK_INT(levels_of(device).count, THREADS / 2 * (STEPS / 2));
        CHECK_BETWEEN(64, window.span[device].peak[PML_ALLOCATED], THREADS / 2 * 64);
    }
    CHECK_INT(pml_meter_ticks(), THREADS * STEPS);
    clear_holders();
}

/* An autograd thread: the line that waits for it may be that of another thread. */
static void *report_from_backward(void *unused)
{
    prctl(PR_SET_NAME, "pt_autograd_0");
    event(1, 0, 100);
    atomic_store(&running, 0);
    return NULL;
}

static void no_line_of_another_thread_is_charged_while_all_are_locked(void)
{
    pthread_t thread;
    struct pml_frame_stack stack = {.depth = 0};
    fresh_holders();
    subscribe(0, 0);
    begin(0, NULL);
    call(&stack, id, 0, FIRST);
    line_event(&stack, 3);
    pml_ledger_lock_all();
    atomic_store(&running, 1);
    pthread_create(&thread, NULL, report_from_backward, NULL);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        CHECK_INT(atomic_load(&running), 1);
    }
    CHECK_INT(levels_of(1).level[PML_ALLOCATED], 0);
    pml_ledger_unlock_all();
    pthread_join(thread, NULL);
    CHECK_INT(levels_of(1).level[PML_ALLOCATED], 100);
    CHECK_INT(held_in_all(0, 1), 100);
    finish(1, &stack);
}

int main(void)
{
    RUN(threads_and_looks_at_once);
    RUN(no_line_of_another_thread_is_charged_while_all_are_locked);
    return check_report();
}
