/* Freed blocks that wait for a stream: which events belong to which free, when a wait ends, and corrections. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "meter/meter.h"
#include "meter/stream_pending.h"

static char event[64];

static void fresh(void)
{
    pml_stream_pending_allocated();
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        pml_stream_pending_correct(d, -1, NULL);
        pml_stream_pending_correct(d, 0, NULL);
    }
}

static void a_free_without_events_does_not_wait(void)
{
    fresh();
    pml_stream_pending_freed(1, 512, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
    CHECK(!pml_stream_pending_unsure(1));
}

static void a_free_with_an_event_waits_for_it(void)
{
    /* GIVEN */
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_freed(1, 512, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 512);
    CHECK(pml_stream_pending_unsure(1));
    CHECK(!pml_stream_pending_unsure(2));
    /* WHEN */
    CHECK_INT(pml_stream_pending_done(&event[0]).device, 1);
    /* THEN nothing is left, but the change is still to be checked */
    CHECK_INT(pml_stream_pending_bytes(1), 0);
    CHECK(pml_stream_pending_unsure(1));
    CHECK(!pml_stream_pending_correct(1, 0, NULL));
    CHECK(!pml_stream_pending_unsure(1));
    CHECK_INT(pml_stream_pending_done(&event[0]).device, -1);
}

static void a_free_waits_for_all_its_events(void)
{
    fresh();
    for (int i = 0; i < 3; i++)
        pml_stream_pending_recorded(&event[i]);
    pml_stream_pending_freed(2, 100, -1);
    CHECK_INT(pml_stream_pending_done(&event[1]).device, -1);
    CHECK_INT(pml_stream_pending_done(&event[1]).device, -1);
    CHECK_INT(pml_stream_pending_done(&event[0]).device, -1);
    CHECK_INT(pml_stream_pending_bytes(2), 100);
    CHECK_INT(pml_stream_pending_done(&event[2]).device, 2);
    CHECK_INT(pml_stream_pending_bytes(2), 0);
}

static void events_belong_to_one_free_only(void)
{
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_freed(1, 100, -1);
    pml_stream_pending_freed(1, 50, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 100);
    CHECK_INT(pml_stream_pending_done(&event[0]).device, 1);
}

static void an_allocation_forgets_events_recorded_by_others(void)
{
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_allocated();
    pml_stream_pending_freed(1, 100, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
}

static void an_unknown_event_ends_nothing(void)
{
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_freed(1, 100, -1);
    CHECK_INT(pml_stream_pending_done(&event[1]).device, -1);
    CHECK_INT(pml_stream_pending_done(NULL).device, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 100);
    CHECK_INT(pml_stream_pending_done(&event[0]).device, 1);
}

static void no_event_at_all_is_not_an_event(void)
{
    /* GIVEN a block with one event and room for more */
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_recorded(&event[1]);
    pml_stream_pending_freed(1, 100, -1);
    /* WHEN */
    for (int i = 0; i < 20; i++)
        pml_stream_pending_done(NULL);
    /* THEN */
    CHECK_INT(pml_stream_pending_bytes(1), 100);
    CHECK_INT(pml_stream_pending_done(&event[0]).device, -1);
    CHECK_INT(pml_stream_pending_done(&event[1]).device, 1);
}

static void more_events_than_can_be_followed_end_early_and_are_corrected(void)
{
    /* GIVEN */
    fresh();
    for (int i = 0; i < 40; i++)
        pml_stream_pending_recorded(&event[i]);
    pml_stream_pending_freed(1, 100, -1);
    /* WHEN */
    for (int i = 0; i < 39; i++)
        pml_stream_pending_done(&event[i]);
    /* THEN the truth can still be put in, and is checked until it is nothing */
    CHECK(pml_stream_pending_unsure(1));
    CHECK(pml_stream_pending_correct(1, 100, NULL));
    CHECK(pml_stream_pending_unsure(1));
    CHECK_INT(pml_stream_pending_bytes(1), 100);
    CHECK(pml_stream_pending_correct(1, 0, NULL));
    CHECK(!pml_stream_pending_unsure(1));
}

static void settling_says_whether_it_differed(void)
{
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_freed(1, 100, -1);
    CHECK(!pml_stream_pending_correct(1, 100, NULL));
    CHECK(pml_stream_pending_unsure(1));
    CHECK(pml_stream_pending_correct(1, 70, NULL));
    CHECK_INT(pml_stream_pending_bytes(1), 70);
}

static void settling_at_nothing_drops_what_waits_on_that_device_alone(void)
{
    /* GIVEN */
    fresh();
    for (int d = 1; d <= 2; d++) {
        pml_stream_pending_recorded(&event[2 * d]);
        pml_stream_pending_freed(d, 100, -1);
        pml_stream_pending_recorded(&event[2 * d + 1]);
        pml_stream_pending_freed(d, 10, -1);
    }
    /* WHEN */
    CHECK(pml_stream_pending_correct(1, 0, NULL));
    /* THEN */
    CHECK_INT(pml_stream_pending_done(&event[2]).device, -1);
    CHECK_INT(pml_stream_pending_done(&event[3]).device, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
    CHECK_INT(pml_stream_pending_bytes(2), 110);
    CHECK_INT(pml_stream_pending_done(&event[4]).device, 2);
    CHECK_INT(pml_stream_pending_done(&event[5]).device, 2);
}

/* ---- against a model ---- */

#define BLOCKS 40

static struct {
    int device;
    int64_t size;
    uint64_t events; /* a bit an event that is not done */
} model[BLOCKS];

static int64_t model_bytes(int device)
{
    int64_t bytes = 0;
    for (int i = 0; i < BLOCKS; i++)
        bytes += model[i].device == device && model[i].events ? model[i].size : 0;
    return bytes;
}

static uint64_t model_events(void)
{
    uint64_t events = 0;
    for (int i = 0; i < BLOCKS; i++)
        events |= model[i].events;
    return events;
}

static void free_one(struct check_random *random)
{
    int i = random_below(random, BLOCKS);
    if (model[i].events)
        return;
    model[i].device = 1 + random_below(random, 3);
    model[i].size = 1 + random_below(random, 1000);
    for (int n = random_below(random, 4); n > 0; n--) {
        int e = random_below(random, 64);
        if ((model_events() >> e & 1) == 0) {
            model[i].events |= UINT64_C(1) << e;
            pml_stream_pending_recorded(&event[e]);
        }
    }
    pml_stream_pending_freed(model[i].device, model[i].size, -1);
}

static void finish_one(struct check_random *random)
{
    int e = random_below(random, 64), device = -1;
    for (int i = 0; i < BLOCKS; i++)
        if (model[i].events >> e & 1) {
            model[i].events &= ~(UINT64_C(1) << e);
            device = model[i].events ? -1 : model[i].device;
        }
    CHECK_INT(pml_stream_pending_done(&event[e]).device, device);
}

static void pending_at_random(struct check_random *random)
{
    fresh();
    for (int i = 0; i < BLOCKS; i++)
        model[i].events = 0;
    for (int step = 0; step < 2000; step++) {
        if (random_below(random, 3) == 0)
            free_one(random);
        else
            finish_one(random);
        for (int d = 1; d <= 3; d++)
            CHECK_INT(pml_stream_pending_bytes(d), model_bytes(d));
    }
}

static void pending_agrees_with_the_model(void)
{
    check_seeds(pending_at_random, 50);
}

/* ---- threads ---- */

#define THREADS 4

static void *record_elsewhere(void *unused)
{
    pml_stream_pending_recorded(&event[0]);
    return NULL;
}

static void events_of_another_thread_are_not_this_frees(void)
{
    pthread_t thread;
    fresh();
    pthread_create(&thread, NULL, record_elsewhere, NULL);
    pthread_join(thread, NULL);
    pml_stream_pending_freed(1, 100, -1);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
}

static void *wait_and_finish(void *argument)
{
    const char *own = argument;
    for (int i = 0; i < 5000; i++) {
        pml_stream_pending_recorded(&own[0]);
        pml_stream_pending_recorded(&own[1]);
        pml_stream_pending_freed(1, 16, -1);
        pml_stream_pending_done(&own[1]);
        pml_stream_pending_done(&own[0]);
    }
    pml_stream_pending_recorded(&own[2]);
    pml_stream_pending_freed(1, 16, -1);
    return NULL;
}

static void threads_add_up(void)
{
    /* WHEN */
    pthread_t thread[THREADS];
    fresh();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, wait_and_finish, &event[4 * i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    /* THEN */
    CHECK_INT(pml_stream_pending_bytes(1), 16 * THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pml_stream_pending_done(&event[4 * i + 2]).device, 1);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
}

static _Atomic bool finished;

static void *finish_first(void *unused)
{
    pml_stream_pending_done(&event[0]);
    atomic_store(&finished, true);
    return NULL;
}

static void while_it_is_locked_nothing_changes(void)
{
    pthread_t thread;
    fresh();
    pml_stream_pending_recorded(&event[0]);
    pml_stream_pending_freed(1, 16, -1);
    pml_stream_pending_lock();
    pthread_create(&thread, NULL, finish_first, NULL);
    usleep(20000);
    CHECK(!atomic_load(&finished));
    pml_stream_pending_unlock();
    pthread_join(thread, NULL);
    CHECK_INT(pml_stream_pending_bytes(1), 0);
}

int main(void)
{
    RUN(a_free_without_events_does_not_wait);
    RUN(a_free_with_an_event_waits_for_it);
    RUN(a_free_waits_for_all_its_events);
    RUN(events_belong_to_one_free_only);
    RUN(an_allocation_forgets_events_recorded_by_others);
    RUN(an_unknown_event_ends_nothing);
    RUN(no_event_at_all_is_not_an_event);
    RUN(more_events_than_can_be_followed_end_early_and_are_corrected);
    RUN(settling_says_whether_it_differed);
    RUN(settling_at_nothing_drops_what_waits_on_that_device_alone);
    RUN(pending_agrees_with_the_model);
    RUN(events_of_another_thread_are_not_this_frees);
    RUN(threads_add_up);
    RUN(while_it_is_locked_nothing_changes);
    fresh();
    return check_report();
}
