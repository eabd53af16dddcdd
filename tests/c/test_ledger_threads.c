/* Threads that run profiled lines, allocate and free at once, while pictures are read, begun and dropped: at every
 * reading the holders add up to the peak. A mutex stands for the GIL; events come without it.
 */
#include <pthread.h>

#include "ledger_world.h"

enum { THREADS = 4, STEPS = 4000, LIVE = 16 };

static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int running;

static void *work(void *argument)
{
    int number = *(const int *)argument;
    struct check_random random = {(uint64_t)number + 1};
    struct pml_frame_stack stack = {.depth = 0};
    int64_t size[LIVE] = {0};
    pthread_mutex_lock(&gil);
    call(&stack, &id[number], number % CODES, FIRST);
    pthread_mutex_unlock(&gil);
    for (int step = 0; step < STEPS; step++) {
        if (step % 8 == 0) {
            pthread_mutex_lock(&gil);
            line_event(&stack, FIRST + random_below(&random, LINES - FIRST));
            pthread_mutex_unlock(&gil);
        }
        int i = random_below(&random, LIVE);
        if (size[i]) {
            release(PML_CPU, number * LIVE + i, size[i]);
            size[i] = 0;
        } else {
            size[i] = 1 + random_below(&random, 1000);
            allocate(PML_CPU, number * LIVE + i, size[i]);
        }
    }
    for (int i = 0; i < LIVE; i++)
        if (size[i])
            release(PML_CPU, number * LIVE + i, size[i]);
    pthread_mutex_lock(&gil);
    return_event(&stack);
    pml_frame_stack_free(&stack);
    pthread_mutex_unlock(&gil);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* All that is allocated is allocated by lines that profiler 0 counts, since before it. */
static void look(void)
{
    static struct pml_frame_stack none;
    pthread_mutex_lock(&gil);
    int64_t peak = peak_of(0, PML_CPU);
    if (peak > 0)
        CHECK_BETWEEN(peak, held_in_all(0, PML_CPU), peak_of(0, PML_CPU));
    begin(1, NULL);
    end(1, &none);
    pml_picture_recording_clear(&picture[1]);
    pthread_mutex_unlock(&gil);
}

static void holders_add_up_whatever_happens_at_once(void)
{
    pthread_t thread[THREADS];
    static int number[THREADS];
    struct pml_frame_stack none = {.depth = 0};
    fresh_holders();
    for (int c = 0; c < CODES; c++)
        subscribe(0, c);
    subscribe(1, 0);
    begin(0, NULL);
    atomic_store(&running, THREADS);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        pthread_create(&thread[i], NULL, work, &number[i]);
    }
    while (atomic_load(&running))
        look();
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    CHECK_INT(held_in_all(0, PML_CPU), peak_of(0, PML_CPU));
    CHECK_INT(value_of(PML_CPU), 0);
    finish(1, &none);
    CHECK(pml_ledger_idle());
}

int main(void)
{
    RUN(holders_add_up_whatever_happens_at_once);
    return check_report();
}
