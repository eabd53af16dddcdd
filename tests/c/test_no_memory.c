/* Memory that runs out: the n-th allocation fails, for each n. Functions say so, leave what was there as it was, and
 * lose nothing. Linked with --wrap, so that every call of malloc, calloc, realloc and free in the core comes here.
 */
#include "meter/cpu_blocks.h"
#include "check.h"
#include "base/moment.h"
#include "base/pointer_map.h"
#include "holders/failures.h"
#include "holders/ledger.h"
#include "holders/picture_recording.h"
#include "fresh.h"
#include "meter/stream_pending.h"
#include "holders/thread_line.h"
#include "saved/saved_tables.h"
#include "frames/segment.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void __real_free(void *pointer);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void __wrap_free(void *pointer);

static int until_failure; /* 0: never */
static int live;
static size_t largest;

static bool fails(size_t size)
{
    largest = largest < size ? size : largest;
    return until_failure && --until_failure == 0;
}

static void *counted(void *pointer)
{
    live += pointer != NULL;
    return pointer;
}

void *__wrap_malloc(size_t size)
{
    return fails(size) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(count * size) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *pointer, size_t size)
{
    if (fails(size))
        return NULL;
    void *grown = __real_realloc(pointer, size);
    live += grown && !pointer;
    return grown;
}

void __wrap_free(void *pointer)
{
    live -= pointer != NULL;
    __real_free(pointer);
}

/* Let the n-th allocation from now fail; true if it did. */
static void fail_at(int n)
{
    until_failure = n;
}

static bool has_failed(void)
{
    bool failed = until_failure == 0;
    until_failure = 0;
    return failed;
}

/* ---- line tables ---- */

static void a_line_table_is_whole_or_not_there(void)
{
    int before = live;
    bool failed = true;
    for (int n = 1; failed; n++) {
        fail_at(n);
        struct pml_line_table *table = pml_line_table_new(1, 100, 0, NULL);
        failed = has_failed();
        CHECK_INT(table == NULL, failed);
        CHECK(failed || n == 3);
        pml_line_table_free(table);
        CHECK_INT(live, before);
    }
}

/* Figures of two devices; or, for a line that has them, those of a second target. */
static void record_on_two_devices(struct pml_line_table *table, int target, int n)
{
    int allocations = target == 1 ? 2 : 1;
    struct pml_window window = {.devices = 2,
                                .span = {{.end.level = {1, 1, 1}, .end_ticks = 1, .held = -1},
                                         {.end.level = {2, 2, 2}, .end_ticks = 1, .held = -1}}};
    if (target != 1)
        CHECK(pml_line_table_record(table, 5, &window, 1));
    fail_at(n);
    bool kept = pml_line_table_record(table, 5, &window, target);
    bool failed = has_failed();
    CHECK_INT(kept, !failed);
    CHECK_INT(failed, n <= allocations);
    CHECK(pml_line_table_record(table, 5, &window, target));
    CHECK(pml_line_table_stats(table, 5, 1 + 1)->runs >= 1);
    CHECK_INT(pml_line_table_stats(table, 5, 1 + 1)->level[PML_ALLOCATED], 2);
}

static void a_segment_that_finds_no_memory_is_lost_alone(void)
{
    fresh_meter();
    pml_meter_move(PML_CPU, 1);
    report(1, 2, 2, 2);
    int before = live;
    for (int n = 2; n <= 7; n++) {
        struct pml_line_table *table = pml_line_table_new(1, 10, 0, NULL);
        record_on_two_devices(table, n % 2 ? 1 : 7, n / 2);
        pml_line_table_free(table);
        CHECK_INT(live, before);
    }
}

static void columns_that_find_no_memory_are_lost_alone(void)
{
    /* GIVEN a reading, and a window around an event */
    int column = pml_stat_columns_add(PML_STAT_COLUMN_LEVEL);
    int before = live;
    fresh_meter();
    report(1, 2, 2, 2);
    pml_stat_columns_sample(1, (int64_t[]){9}, (int64_t[]){9});
    for (int n = 1; n <= 3; n++) {
        struct pml_line_table *table = pml_line_table_new(1, 10, 1, &column);
        struct pml_window window = {.devices = 2};
        CHECK(pml_stat_columns_begin(&window.columns, 2));
        /* WHEN */
        fail_at(n);
        bool kept = pml_line_table_record_columns(table, 5, &window, 1);
        bool failed = has_failed();
        /* THEN */
        CHECK_INT(kept, !failed);
        CHECK_INT(failed, n <= 2);
        CHECK_INT(pml_line_table_columns(table, 5, 1 + 1) != NULL, n != 1);
        CHECK_INT(pml_line_table_columns(table, 5, PML_TARGET_SLOT) != NULL, n != 2);
        pml_stat_columns_free(&window.columns);
        pml_line_table_free(table);
        CHECK_INT(live, before);
    }
}

/* ---- marks ---- */

static void marks_without_memory_are_inactive(void)
{
    struct pml_column_values columns = {.value = NULL};
    int before = live;
    fail_at(1);
    CHECK(!pml_stat_columns_begin(&columns, 2));
    CHECK(has_failed());
    CHECK(!columns.active);
    pml_stat_columns_raise(&columns, 1);
    pml_stat_columns_free(&columns);
    CHECK_INT(live, before);
}

static void marks_that_cannot_grow_keep_what_they_have(void)
{
    struct pml_column_values columns = {.value = NULL};
    int before = live;
    pml_stat_columns_sample(1, (int64_t[]){9}, (int64_t[]){9});
    CHECK(pml_stat_columns_begin(&columns, 2));
    fail_at(1);
    pml_stat_columns_raise(&columns, 20);
    CHECK(has_failed());
    CHECK_INT(columns.devices, 2);
    CHECK_INT(pml_stat_columns_value(&columns, 1, 0), 9);
    fail_at(1);
    CHECK(!pml_stat_columns_begin(&columns, 30));
    CHECK(has_failed());
    pml_stat_columns_free(&columns);
    CHECK_INT(live, before);
}

/* ---- blocks ---- */

static bool put(uintptr_t address)
{
    size_t before;
    return pml_cpu_blocks_put((const void *)address, 8, &before);
}

static void a_block_table_that_cannot_grow_keeps_its_blocks(void)
{
    int before = live;
    uintptr_t entered = 0;
    pml_cpu_blocks_clear();
    /* GIVEN every shard is there, WHEN none can grow */
    for (uintptr_t i = 1; i <= 1000; i++)
        CHECK(put(i << 6));
    for (uintptr_t i = 1001; i <= 20000; i++) {
        fail_at(1);
        bool kept = put(i << 6);
        CHECK_INT(kept, !has_failed());
        entered += kept;
    }
    /* THEN those that were entered, and no others, are there */
    CHECK_BETWEEN(1, entered, 16 * 256 * 3 / 4);
    CHECK_INT(pml_cpu_blocks_count(), 1000 + entered);
    for (uintptr_t i = 1; i <= 20000; i++)
        entered -= pml_cpu_blocks_take((const void *)(i << 6)) != 0;
    CHECK_INT(entered, -1000);
    pml_cpu_blocks_clear();
    CHECK_INT(live, before);
}

static void tables_that_grew_are_given_back_whole(void)
{
    int before = live;
    for (uintptr_t i = 1; i <= 20000; i++)
        CHECK(put(i << 6));
    pml_cpu_blocks_clear();
    CHECK_INT(live, before);
}

static void a_first_block_that_finds_no_memory_is_not_entered(void)
{
    int before = live;
    pml_cpu_blocks_clear();
    fail_at(1);
    CHECK(!put(64));
    CHECK(has_failed());
    fail_at(1);
    CHECK(!pml_cpu_blocks_seed((const void *)64, 8));
    CHECK(has_failed());
    CHECK_INT(pml_cpu_blocks_count(), 0);
    CHECK_INT(pml_cpu_blocks_take((const void *)64), 0);
    CHECK_INT(live, before);
}

/* ---- the code map ---- */

#define KEYS 500

static char key[KEYS];
static struct pml_subscriber subscriber[2];

static void a_subscription_is_made_or_not(void)
{
    /* n counts through the first subscription, with the table's two arrays, and the growth of the table */
    for (int i = 0; i < KEYS; i++) {
        bool failed = true;
        for (int n = 1; failed; n++) {
            int before = live;
            fail_at(n);
            bool made = pml_codes_subscribe(&key[i], &subscriber[0]);
            failed = has_failed();
            CHECK_INT(made, !failed);
            CHECK_INT(pml_codes_find(&key[i]) != NULL, made);
            CHECK(made || live <= before + 2); /* the table may have grown */
        }
    }
    for (int i = 0; i < KEYS; i++)
        CHECK_INT(pml_codes_find(&key[i])->subscribers, 1);
}

static void a_second_subscription_that_fails_leaves_the_first(void)
{
    fail_at(1);
    CHECK(!pml_codes_subscribe(&key[0], &subscriber[1]));
    CHECK(has_failed());
    CHECK_INT(pml_codes_find(&key[0])->subscribers, 1);
    CHECK_POINTER(pml_codes_find(&key[0])->subscriber[0], &subscriber[0]);
}

static void subscriptions_are_given_back_whole(void)
{
    for (int i = 0; i < KEYS; i++)
        pml_codes_unsubscribe(&key[i], &subscriber[0]);
    CHECK_INT(live, 2); /* the table itself */
}

/* Profilers that come and go: the table's size follows those that are there, not all there ever were. */
static void the_code_map_does_not_grow_by_what_went_away(void)
{
    largest = 0;
    for (int i = 0; i < 200000; i++) {
        const void *passing = (const void *)(uintptr_t)(4096 + 16 * i);
        CHECK(pml_codes_subscribe(passing, &subscriber[0]));
        pml_codes_unsubscribe(passing, &subscriber[0]);
    }
    CHECK_BETWEEN(1, largest, 64 * 1024);
}

/* ---- the frame stack ---- */

static void a_push_that_finds_no_memory_leaves_the_stack_as_it_was(void)
{
    struct pml_code code = {.references = 1};
    struct pml_frame_stack stack = {.depth = 0};
    pml_thread_line_release(pml_thread_line_retain()); /* this thread's place stays */
    int before = live;
    fresh_meter();
    for (int depth = 0; depth < 40; depth++) {
        for (int n = 1; n <= 2; n++) {
            fail_at(n);
            struct pml_frame *frame = pml_frame_stack_push(&stack, &key[depth], &code);
            bool failed = has_failed();
            CHECK_INT(frame == NULL, failed);
            CHECK_INT(linked_windows(), stack.depth != 0);
            if (frame) {
                pml_codes_retain(&code);
                CHECK_INT(stack.depth, depth + 1);
                break;
            }
            CHECK_INT(stack.depth, depth);
            CHECK_INT(pml_frame_stack_top(&stack) ? pml_frame_stack_top(&stack)->id == &key[depth - 1] : 1, 1);
        }
        if (stack.depth == depth) {
            CHECK(pml_frame_stack_push(&stack, &key[depth], &code) != NULL);
            pml_codes_retain(&code);
        }
    }
    pml_frame_stack_free(&stack);
    CHECK_INT(code.references, 1);
    CHECK_INT(live, before);
}

static void a_stack_of_known_depth_needs_no_memory(void)
{
    struct pml_code code = {.references = 1000};
    struct pml_frame_stack stack = {.depth = 0};
    fresh_meter();
    for (int i = 0; i < 100; i++)
        CHECK(pml_frame_stack_push(&stack, key, &code) != NULL);
    pml_frame_stack_cut(&stack, 0);
    fail_at(1);
    for (int i = 0; i < 100; i++)
        CHECK(pml_frame_stack_push(&stack, key, &code) != NULL);
    CHECK(!has_failed());
    pml_frame_stack_free(&stack);
}

/* ---- pending ---- */

static void a_wait_that_finds_no_memory_is_corrected_later(void)
{
    int before = live;
    pml_stream_pending_allocated();
    pml_stream_pending_recorded(key);
    fail_at(1);
    pml_stream_pending_freed(1, 100, -1);
    CHECK(has_failed());
    CHECK_INT(pml_stream_pending_bytes(1), 100);
    CHECK_INT(pml_stream_pending_done(key).device, -1);
    CHECK(pml_stream_pending_unsure(1));
    CHECK(pml_stream_pending_correct(1, 0, NULL));
    CHECK(!pml_stream_pending_unsure(1));
    CHECK_INT(live, before);
}

static void waits_that_ended_are_given_back(void)
{
    int before = live;
    for (int i = 0; i < 4; i++) {
        pml_stream_pending_recorded(&key[i]);
        pml_stream_pending_freed(1, 100, -1);
    }
    CHECK_INT(live, before + 4);
    CHECK_INT(pml_stream_pending_done(&key[1]).device, 1);
    CHECK_INT(live, before + 3);
    CHECK(pml_stream_pending_correct(1, 0, NULL));
    CHECK_INT(live, before);
}

/* ---- segments ---- */

static struct pml_recorder recorder;

/* One segment of line 5, that began with or without a sample, in which a device was used. */
static void run_segment(struct pml_code *code, bool sampled, int n)
{
    struct pml_frame_stack stack = {.depth = 0};
    struct pml_frame *frame = pml_frame_stack_push(&stack, key, pml_codes_retain(code));
    fail_at(n);
    pml_segment_open(frame, 5, sampled, NULL);
    report(1, 2, 2, 2);
    fold();
    pml_segment_close(frame);
    bool failed = has_failed();
    CHECK_INT(recorder.failed, failed);
    pml_frame_stack_free(&stack);
}

static int run_segments(bool sampled)
{
    int column = 0, n = 1;
    for (bool failed = true; failed; n++) {
        int before = live;
        fresh_meter();
        recorder =
            (struct pml_recorder){.recording = true, .sample_runs = 9, .stat_columns = 1, .stat_column_ids = &column};
        subscriber[0] = (struct pml_subscriber){&recorder, pml_line_table_new(1, 10, 1, &column), 0, NULL};
        CHECK(pml_codes_subscribe(key, &subscriber[0]));
        run_segment(pml_codes_find(key), sampled, n);
        failed = recorder.failed;
        pml_codes_unsubscribe(key, &subscriber[0]);
        pml_line_table_free(subscriber[0].table);
        CHECK_INT(live, before);
    }
    return n - 2;
}

/* Each allocation that can fail within a segment leaves a mark on the profiler that lost something. */
static void a_profiler_that_lost_figures_says_so(void)
{
    CHECK_INT(run_segments(false), 1); /* figures of the device */
    CHECK_INT(run_segments(true), 4);  /* and the window's marks, and the columns of both */
}

/* ---- holders ---- */

static struct pml_peak_picture picture;

/* Two lines that allocate, and an allocation that fails; memory runs out for the n-th thing that this needs. */
static void hold(int n)
{
    struct pml_frame_stack stack = {.depth = 0};
    fail_at(n);
    picture.group = -1;
    pml_picture_recording_start(&picture, &recorder);
    pml_codes_regroup();
    struct pml_frame *frame = pml_frame_stack_push(&stack, key, pml_codes_retain(pml_codes_find(key)));
    for (int line = 3; frame && line < 5; line++) {
        pml_segment_open(frame, line, false, NULL);
        pml_ledger_lock(1);
        report(1, 10, 10 * (line - 2), 100);
        pml_ledger_allocated(1, key + line, 10, 10 * (line - 2));
        pml_ledger_unlock(1);
    }
    pml_failures_note(1, 99, 20, 100);
    pml_picture_recording_stop(&picture, &recorder);
    bool failed = has_failed();
    CHECK_INT(picture.failed || !frame, failed);
    recorder.recording = false;
    pml_codes_regroup();
    if (!frame)
        pml_codes_release(pml_codes_find(key));
    pml_frame_stack_free(&stack);
    pml_picture_recording_clear(&picture);
    pml_ledger_reset();
}

static void holders_that_find_no_memory_say_so_and_leave_nothing(void)
{
    int before = 0;
    pml_thread_line_release(pml_thread_line_retain());
    for (int n = 1; n <= 60; n++) {
        fresh_meter();
        recorder = (struct pml_recorder){.recording = true};
        picture = (struct pml_peak_picture){.group = -1};
        subscriber[0] = (struct pml_subscriber){&recorder, pml_line_table_new(1, 10, 0, NULL), 0, NULL};
        CHECK(pml_codes_subscribe(key, &subscriber[0]));
        hold(n <= 30 ? n : n - 30);
        pml_codes_unsubscribe(key, &subscriber[0]);
        pml_line_table_free(subscriber[0].table);
        if (n == 30) /* what is kept for more: numbers of owners, bytes by number */
            before = live;
        if (n > 30)
            CHECK_BETWEEN(before - 4, live, before + 4); /* forgotten owners go with the next code object */
    }
}

/* ---- what autograd saves ---- */

static char saved_memory[40];

/* One line saves some blocks; what it counted of them. */
static int64_t save_blocks(struct pml_recorder *recorder, struct pml_saved_table *table, int64_t *now)
{
    struct pml_subscriber sub = {.recorder = recorder, .saved = table};
    struct pml_subscriber *subs[] = {&sub};
    struct pml_code code = {.subscribers = 1, .subscriber = subs, .references = 100};
    struct pml_frame frame = {.code = &code, .line = 3, .window.call = 1, .segment = 1};
    struct pml_frame *frames[] = {&frame};
    struct pml_frame_stack stack = {.frame = frames, .depth = 1};
    pml_frame_stack_enter_thread(&stack);
    for (int i = 0; i < 40; i++) {
        pml_saved_tables_allocated(PML_CPU, &saved_memory[i], 10);
        pml_saved_tables_note(&(struct pml_saved_tensor){.storage = &saved_memory[i], .bytes = 10});
    }
    pml_frame_stack_enter_thread(NULL);
    struct pml_saved_figures figures;
    pml_saved_tables_read(table, 3, PML_CPU, &figures);
    for (int i = 0; i < 40; i++)
        pml_saved_tables_freed(&saved_memory[i]);
    struct pml_saved_figures after;
    pml_saved_tables_read(table, 3, PML_CPU, &after);
    *now = after.now[PML_SAVED_ACTIVATION] + after.now[PML_SAVED_INPUT];
    return figures.peak[PML_SAVED_ACTIVATION] + figures.peak[PML_SAVED_INPUT];
}

static void saved_blocks_that_find_no_memory_are_told(void)
{
    int before = live;
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct pml_recorder recorder = {.recording = true};
        fresh_meter();
        atomic_store(&pml_moment, 1);
        fail_at(n);
        struct pml_saved_table *table = pml_saved_tables_new(1, 10, 1);
        int64_t now = 0, counted_bytes = 0;
        pml_saved_tables_follow(true);
        if (table)
            counted_bytes = save_blocks(&recorder, table, &now);
        failed = has_failed();
        CHECK(!failed || !table || counted_bytes == 400 || pml_saved_tables_incomplete(table));
        CHECK(failed || (counted_bytes == 400 && !pml_saved_tables_incomplete(table)));
        CHECK_INT(now, 0);
        pml_saved_tables_release(table);
        pml_saved_tables_follow(false);
        CHECK_INT(live, before);
    }
}

static void a_pointer_map_that_cannot_grow_keeps_what_it_has(void)
{
    static char memory[5000];
    struct pml_pointer_map map = {.slots = NULL};
    int before = live;
    fail_at(1);
    CHECK_POINTER(pml_pointer_map_enter(&map, memory), NULL);
    CHECK(has_failed());
    uint32_t entered = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        fail_at(i ? 1 : 2); /* the first table is there, no other one */
        uint32_t *value = pml_pointer_map_enter(&map, &memory[i]);
        CHECK_INT(value == NULL, has_failed());
        if (value)
            *value = ++entered;
    }
    CHECK_INT(entered, map.used);
    CHECK_BETWEEN(1, entered, 4999);
    for (uint32_t i = 0; i < entered; i++)
        CHECK_INT(*pml_pointer_map_find(&map, &memory[i]), i + 1);
    pml_pointer_map_free(&map);
    CHECK_INT(live, before);
}

int main(void)
{
    RUN(a_line_table_is_whole_or_not_there);
    RUN(a_segment_that_finds_no_memory_is_lost_alone);
    RUN(columns_that_find_no_memory_are_lost_alone);
    RUN(marks_without_memory_are_inactive);
    RUN(marks_that_cannot_grow_keep_what_they_have);
    RUN(a_block_table_that_cannot_grow_keeps_its_blocks);
    RUN(tables_that_grew_are_given_back_whole);
    RUN(a_first_block_that_finds_no_memory_is_not_entered);
    RUN(a_subscription_is_made_or_not);
    RUN(a_second_subscription_that_fails_leaves_the_first);
    RUN(subscriptions_are_given_back_whole);
    RUN(the_code_map_does_not_grow_by_what_went_away);
    RUN(a_push_that_finds_no_memory_leaves_the_stack_as_it_was);
    RUN(a_stack_of_known_depth_needs_no_memory);
    RUN(a_wait_that_finds_no_memory_is_corrected_later);
    RUN(waits_that_ended_are_given_back);
    RUN(a_profiler_that_lost_figures_says_so);
    RUN(holders_that_find_no_memory_say_so_and_leave_nothing);
    RUN(saved_blocks_that_find_no_memory_are_told);
    RUN(a_pointer_map_that_cannot_grow_keeps_what_it_has);
    return check_report();
}
