/* Meter, from four threads at once: sums are exact, peaks are levels that were there, and no fold loses one. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"
#include "fresh.h"

#define THREADS 4
#define ROUNDS 50000
#define HELD 1000

static pthread_barrier_t all_begin, all_hold, all_done;

struct worker {
    pthread_t thread;
    uint64_t seed;
    int64_t gross;
    int64_t count;
    int64_t seen;
};

static void allocate(struct worker *worker, int64_t size)
{
    struct pml_levels now;
    pml_meter_move(PML_CPU, size);
    worker->gross += size;
    worker->count++;
    pml_meter_read(PML_CPU, &now);
    if (worker->seen < now.level[PML_ALLOCATED])
        worker->seen = now.level[PML_ALLOCATED];
}

/* Never more than HELD bytes, and exactly HELD in the middle, when all threads wait for each other. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct check_random random = {worker->seed};
    pthread_barrier_wait(&all_begin);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t size = 1 + random_below(&random, HELD / 2);
        allocate(worker, size);
        pml_meter_move(PML_CPU, -size);
        if (i == ROUNDS / 2) {
            allocate(worker, HELD);
            pthread_barrier_wait(&all_hold);
            pthread_barrier_wait(&all_done);
            pml_meter_move(PML_CPU, -HELD);
        }
    }
    allocate(worker, 7);
    return NULL;
}

static void start(struct worker *workers, void *(*function)(void *))
{
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.seed = (uint64_t)i + 1};
        pthread_create(&workers[i].thread, NULL, function, &workers[i]);
    }
}

static struct worker join(struct worker *workers)
{
    struct worker sum = {.gross = 0};
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        sum.gross += workers[i].gross;
        sum.count += workers[i].count;
        sum.seen = sum.seen < workers[i].seen ? workers[i].seen : sum.seen;
    }
    return sum;
}

/* One segment after another, without a gap, as the lines of a frame are. */
static int64_t next_segment_peak(struct pml_window *window)
{
    fold();
    int64_t peak = window->span[PML_CPU].peak[PML_ALLOCATED];
    pml_window_restart(window);
    return peak;
}

static void events_of_four_threads_add_up(void)
{
    /* GIVEN one window around all, and four threads */
    fresh_meter();
    struct worker workers[THREADS];
    struct pml_window whole = {.devices = 0}, segment = {.devices = 0};
    pthread_barrier_init(&all_begin, NULL, THREADS);
    pthread_barrier_init(&all_hold, NULL, THREADS);
    pthread_barrier_init(&all_done, NULL, THREADS);
    open_window(&whole);
    open_window(&segment);
    /* WHEN segments end and begin while they run */
    start(workers, work);
    int64_t segment_peak = 0;
    bool running = true;
    while (running) {
        running = pml_meter_ticks() < (uint64_t)THREADS * (2 * ROUNDS + 3);
        int64_t peak = next_segment_peak(&segment);
        segment_peak = segment_peak < peak ? peak : segment_peak;
    }
    struct worker sum = join(workers);
    close_window(&segment);
    close_window(&whole);
    /* THEN sums are exact, and the peak is the moment when every thread held its most */
    struct pml_levels now;
    pml_meter_read(PML_CPU, &now);
    CHECK_INT(now.level[PML_ALLOCATED], THREADS * 7);
    CHECK_INT(now.gross, sum.gross);
    CHECK_INT(now.count, sum.count);
    CHECK_INT(pml_meter_ticks(), (int64_t)THREADS * (2 * ROUNDS + 3));
    CHECK_INT(whole.span[PML_CPU].peak[PML_ALLOCATED], THREADS * HELD);
    CHECK_INT(segment_peak, THREADS * HELD);
    CHECK(sum.seen <= whole.span[PML_CPU].peak[PML_ALLOCATED]);
    pthread_barrier_destroy(&all_begin);
    pthread_barrier_destroy(&all_hold);
    pthread_barrier_destroy(&all_done);
}

static _Atomic bool stop_folding;

static void *allocate_and_free(void *argument)
{
    struct worker *worker = argument;
    struct check_random random = {worker->seed};
    for (int i = 0; i < ROUNDS; i++) {
        int64_t size = 1 + random_below(&random, HELD);
        allocate(worker, size);
        pml_meter_move(PML_CPU, -size);
    }
    return NULL;
}

static void *fold_until_told(void *argument)
{
    struct pml_window window = {.devices = 0};
    int64_t *peak = argument;
    while (!atomic_load(&stop_folding)) {
        open_window(&window);
        sched_yield();
        close_window(&window);
        if (*peak < window.span[PML_CPU].peak[PML_ALLOCATED])
            *peak = window.span[PML_CPU].peak[PML_ALLOCATED];
    }
    return NULL;
}

/* Each level that a thread has read existed: it must be below the peak, whatever folds ran meanwhile. */
static void no_level_that_a_thread_saw_is_above_the_peak(void)
{
    /* GIVEN */
    fresh_meter();
    struct worker workers[THREADS];
    struct pml_window whole = {.devices = 0};
    pthread_t folder;
    int64_t inner_peak = 0;
    atomic_store(&stop_folding, false);
    open_window(&whole);
    /* WHEN */
    pthread_create(&folder, NULL, fold_until_told, &inner_peak);
    start(workers, allocate_and_free);
    struct worker sum = join(workers);
    atomic_store(&stop_folding, true);
    pthread_join(folder, NULL);
    close_window(&whole);
    /* THEN */
    struct pml_levels now;
    pml_meter_read(PML_CPU, &now);
    CHECK_INT(now.level[PML_ALLOCATED], 0);
    CHECK_INT(now.gross, sum.gross);
    CHECK_BETWEEN(sum.seen, whole.span[PML_CPU].peak[PML_ALLOCATED], THREADS * HELD);
    CHECK_BETWEEN(0, inner_peak, whole.span[PML_CPU].peak[PML_ALLOCATED]);
}

static pthread_mutex_t device_lock[PML_MAX_DEVICES];

static void *appear(void *argument)
{
    struct worker *worker = argument;
    int own = (int)worker->seed; /* calls for one device do not overlap */
    for (int i = 0; i < 1000; i++) {
        int device = own + i * THREADS % (PML_MAX_DEVICES - 1);
        pthread_mutex_lock(&device_lock[device]);
        report(device, 1, 1, 1);
        pthread_mutex_unlock(&device_lock[device]);
    }
    return NULL;
}

static void fold_locked(void)
{
    for (int d = 1; d < PML_MAX_DEVICES; d++) {
        pthread_mutex_lock(&device_lock[d]);
        pml_window_fold_device(d);
        pthread_mutex_unlock(&device_lock[d]);
    }
}

static void devices_may_appear_in_several_threads_at_once(void)
{
    /* GIVEN */
    fresh_meter();
    struct worker workers[THREADS];
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        pthread_mutex_init(&device_lock[d], NULL);
    /* WHEN */
    start(workers, appear);
    while (pml_meter_ticks() < THREADS * 1000)
        fold_locked();
    join(workers);
    /* THEN */
    struct pml_levels now;
    int64_t count = 0;
    for (int d = 1; d < PML_MAX_DEVICES; d++) {
        pml_meter_read(d, &now);
        count += now.count;
        CHECK(pml_meter_used(d));
    }
    CHECK_INT(pml_meter_devices(), PML_MAX_DEVICES);
    CHECK_INT(count, THREADS * 1000);
    CHECK_INT(pml_meter_ticks(), THREADS * 1000);
}

int main(void)
{
    RUN(events_of_four_threads_add_up);
    RUN(no_level_that_a_thread_saw_is_above_the_peak);
    RUN(devices_may_appear_in_several_threads_at_once);
    return check_report();
}
