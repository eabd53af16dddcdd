/* Live blocks: the table against a model, growth, deletion by shifting back, threads, and the locks around a fork. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "meter/cpu_blocks.h"
#include "check.h"

static const void *pointer_at(uint64_t address)
{
    return (const void *)(uintptr_t)address;
}

static bool put(const void *pointer, size_t size)
{
    size_t before;
    return pml_cpu_blocks_put(pointer, size, &before);
}

static void a_block_is_taken_once(void)
{
    /* GIVEN */
    pml_cpu_blocks_clear();
    CHECK(put(pointer_at(0x1000), 64));
    CHECK_INT(pml_cpu_blocks_count(), 1);
    /* WHEN, THEN */
    CHECK_INT(pml_cpu_blocks_size(pointer_at(0x1000)), 64);
    CHECK_INT(pml_cpu_blocks_take(pointer_at(0x1000)), 64);
    CHECK_INT(pml_cpu_blocks_size(pointer_at(0x1000)), 0);
    CHECK_INT(pml_cpu_blocks_take(pointer_at(0x1000)), 0);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

static void an_unknown_pointer_has_no_size(void)
{
    pml_cpu_blocks_clear();
    CHECK_INT(pml_cpu_blocks_take(pointer_at(0x40)), 0);
    CHECK(put(pointer_at(0x1000), 64));
    CHECK_INT(pml_cpu_blocks_take(pointer_at(0x40)), 0);
    CHECK_INT(pml_cpu_blocks_size(pointer_at(0x40)), 0);
    CHECK_INT(pml_cpu_blocks_size(NULL), 0);
    CHECK_INT(pml_cpu_blocks_take(NULL), 0);
    CHECK_INT(pml_cpu_blocks_count(), 1);
}

static void a_pointer_already_there_gets_the_new_size(void)
{
    /* GIVEN a block whose end was not seen */
    pml_cpu_blocks_clear();
    size_t before = 99;
    CHECK(pml_cpu_blocks_put(pointer_at(0x1000), 64, &before));
    CHECK_INT(before, 0);
    /* WHEN */
    CHECK(pml_cpu_blocks_put(pointer_at(0x1000), 32, &before));
    /* THEN */
    CHECK_INT(before, 64);
    CHECK_INT(pml_cpu_blocks_count(), 1);
    CHECK_INT(pml_cpu_blocks_take(pointer_at(0x1000)), 32);
}

static void a_seed_enters_only_what_is_new(void)
{
    pml_cpu_blocks_clear();
    CHECK(pml_cpu_blocks_seed(pointer_at(0x1000), 64));
    CHECK(!pml_cpu_blocks_seed(pointer_at(0x1000), 32));
    CHECK_INT(pml_cpu_blocks_count(), 1);
    CHECK_INT(pml_cpu_blocks_take(pointer_at(0x1000)), 64);
}

static void clearing_forgets_all_and_the_table_can_be_used_again(void)
{
    for (uint64_t i = 1; i <= 1000; i++)
        CHECK(put(pointer_at(i << 6), (size_t)i));
    pml_cpu_blocks_clear();
    CHECK_INT(pml_cpu_blocks_count(), 0);
    CHECK_INT(pml_cpu_blocks_take(pointer_at(64)), 0);
    CHECK(put(pointer_at(64), 5));
    CHECK_INT(pml_cpu_blocks_take(pointer_at(64)), 5);
}

/* ---- against a model ---- */

#define MANY 100000

static size_t model[MANY];

/* Addresses as an allocator gives them: close together, and in a few far regions. */
static const void *pointer_of(int i)
{
    return pointer_at(UINT64_C(0x7f0000000000) + ((uint64_t)(i & 7) << 32) + ((uint64_t)(i >> 3) << 6));
}

static void many_blocks_are_all_found(void)
{
    /* GIVEN more than any first capacity */
    pml_cpu_blocks_clear();
    for (int i = 0; i < MANY; i++)
        CHECK(put(pointer_of(i), (size_t)i + 1));
    CHECK_INT(pml_cpu_blocks_count(), MANY);
    /* WHEN every third goes, THEN the others are there */
    for (int i = 0; i < MANY; i += 3)
        CHECK_INT(pml_cpu_blocks_take(pointer_of(i)), i + 1);
    for (int i = 0; i < MANY; i++)
        CHECK_INT(pml_cpu_blocks_take(pointer_of(i)), i % 3 ? i + 1 : 0);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

static int64_t step_against_model(struct check_random *random, int range)
{
    int i = random_below(random, range);
    size_t size = 1 + (size_t)random_below(random, 1 << 20), before = 0;
    size_t known = model[i];
    switch (random_below(random, 5)) {
    case 0:
        CHECK_INT(pml_cpu_blocks_seed(pointer_of(i), size), !known);
        model[i] = known ? known : size;
        break;
    case 1:
    case 2:
        CHECK(pml_cpu_blocks_put(pointer_of(i), size, &before));
        CHECK_INT(before, known);
        model[i] = size;
        break;
    default: CHECK_INT(pml_cpu_blocks_take(pointer_of(i)), known); model[i] = 0;
    }
    return (model[i] != 0) - (known != 0);
}

static void blocks_at_random(struct check_random *random)
{
    /* a small range keeps clusters alive that removal must close; a large one grows the table */
    int range = random_below(random, 2) ? 500 : MANY;
    int64_t count = 0;
    pml_cpu_blocks_clear();
    for (int i = 0; i < MANY; i++)
        model[i] = 0;
    for (int i = 0; i < MANY; i++)
        count += step_against_model(random, range);
    CHECK_INT(pml_cpu_blocks_count(), count);
    for (int i = 0; i < range; i++)
        CHECK_INT(pml_cpu_blocks_take(pointer_of(i)), model[i]);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

static void blocks_agree_with_the_model(void)
{
    check_seeds(blocks_at_random, 6);
}

/* ---- threads ---- */

#define THREADS 4
#define RANGE 2000

struct worker {
    pthread_t thread;
    int number;
    int wrong;
    int64_t put;
    int64_t taken;
};

static void *use_own_pointers(void *argument)
{
    struct worker *worker = argument;
    struct check_random random = {(uint64_t)worker->number};
    size_t size[RANGE] = {0}, before;
    for (int step = 0; step < MANY; step++) {
        int i = random_below(&random, RANGE);
        const void *pointer = pointer_of(i * THREADS + worker->number);
        if (random_below(&random, 2)) {
            size_t bytes = 1 + (size_t)random_below(&random, 4096);
            worker->wrong += !pml_cpu_blocks_put(pointer, bytes, &before) || before != size[i];
            size[i] = bytes;
        } else {
            worker->wrong += pml_cpu_blocks_take(pointer) != size[i];
            size[i] = 0;
        }
    }
    for (int i = 0; i < RANGE; i++)
        worker->wrong += pml_cpu_blocks_take(pointer_of(i * THREADS + worker->number)) != size[i];
    return NULL;
}

static struct worker run_threads(void *(*function)(void *))
{
    struct worker workers[THREADS], sum = {.number = 0};
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i};
        pthread_create(&workers[i].thread, NULL, function, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        sum.wrong += workers[i].wrong;
        sum.put += workers[i].put;
        sum.taken += workers[i].taken;
    }
    return sum;
}

static void threads_with_own_pointers_do_not_disturb_each_other(void)
{
    pml_cpu_blocks_clear();
    struct worker sum = run_threads(use_own_pointers);
    CHECK_INT(sum.wrong, 0);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

/* All threads put and take the same few pointers: whatever was put must be taken once. */
static void *use_shared_pointers(void *argument)
{
    struct worker *worker = argument;
    struct check_random random = {(uint64_t)worker->number};
    for (int step = 0; step < MANY; step++) {
        const void *pointer = pointer_of(random_below(&random, 300));
        if (random_below(&random, 2)) {
            size_t bytes = 1 + (size_t)random_below(&random, 4096);
            worker->put += pml_cpu_blocks_seed(pointer, bytes) ? (int64_t)bytes : 0;
        } else {
            worker->taken += (int64_t)pml_cpu_blocks_take(pointer);
        }
    }
    return NULL;
}

static void what_threads_put_is_taken_once(void)
{
    /* WHEN */
    pml_cpu_blocks_clear();
    struct worker sum = run_threads(use_shared_pointers);
    /* THEN */
    CHECK(sum.put > 0);
    for (int i = 0; i < 300; i++)
        sum.taken += (int64_t)pml_cpu_blocks_take(pointer_of(i));
    CHECK_INT(sum.taken, sum.put);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

/* ---- around a fork ---- */

static _Atomic(const void *) to_put;
static _Atomic bool was_put;

static void *put_one(void *unused)
{
    put(atomic_load(&to_put), 1);
    atomic_store(&was_put, true);
    return NULL;
}

static void check_waits(const void *pointer)
{
    pthread_t thread;
    atomic_store(&to_put, pointer);
    atomic_store(&was_put, false);
    pml_cpu_blocks_lock_all();
    pthread_create(&thread, NULL, put_one, NULL);
    usleep(1000);
    CHECK(!atomic_load(&was_put));
    pml_cpu_blocks_unlock_all();
    pthread_join(thread, NULL);
    CHECK_INT(pml_cpu_blocks_take(pointer), 1);
}

/* 100 pointers: no shard is missed, but for a chance of 1 in 600. */
static void while_all_is_locked_nobody_gets_in(void)
{
    pml_cpu_blocks_clear();
    for (int i = 0; i < 100; i++)
        check_waits(pointer_of(i * 13));
}

int main(void)
{
    RUN(a_block_is_taken_once);
    RUN(an_unknown_pointer_has_no_size);
    RUN(a_pointer_already_there_gets_the_new_size);
    RUN(a_seed_enters_only_what_is_new);
    RUN(clearing_forgets_all_and_the_table_can_be_used_again);
    RUN(many_blocks_are_all_found);
    RUN(blocks_agree_with_the_model);
    RUN(threads_with_own_pointers_do_not_disturb_each_other);
    RUN(what_threads_put_is_taken_once);
    RUN(while_all_is_locked_nobody_gets_in);
    pml_cpu_blocks_clear();
    return check_report();
}
