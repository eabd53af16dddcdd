/* What is written with the GIL and read without it: one thread stands for the one that has the GIL, another for
 * PyTorch's. The checks are few; ThreadSanitizer finds what is read and written at once (make tsan).
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "ledger_world.h"
#include "saved/saved_tables.h"

enum { ROUNDS = 2000 };

static _Atomic bool over;

/* Runs `other` on a thread of its own, again and again, while `with_gil` runs. */
static void run_at_once(void (*with_gil)(void), void *(*other)(void *))
{
    pthread_t thread;
    atomic_store(&over, false);
    pthread_create(&thread, NULL, other, NULL);
    with_gil();
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}

/* ---- the age of an owner that autograd's threads make, while pictures begin ---- */

static struct pml_owner lines[ROUNDS];

static void begin_pictures(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct pml_peak_picture fresh = {.group = -1};
        struct pml_recorder own = {.recording = false};
        pml_picture_recording_start(&fresh, &own);
        pml_picture_recording_stop(&fresh, &own);
    }
}

static void *make_owners(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        pml_owners_in_backward(&lines[i]);
    return NULL;
}

static void owners_are_made_while_pictures_begin(void)
{
    fresh_holders();
    uint64_t before = pml_moment_now();
    run_at_once(begin_pictures, make_owners);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_BETWEEN(before, lines[i].in_backward->born, pml_moment_now());
        free(lines[i].in_backward);
    }
}

/* ---- whether a profiler records, while a thread saves for backward ---- */

static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;

static void start_and_stop(void)
{
    struct pml_frame_stack none = {.depth = 0};
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&gil);
        stop(1, &none, 1);
        start(1);
        pthread_mutex_unlock(&gil);
    }
}

static char memory[ROUNDS + 1];

static void save_block(int i)
{
    pml_saved_tables_note(&(struct pml_saved_tensor){.storage = &memory[i], .bytes = 10});
}

static void *save(void *unused)
{
    struct pml_frame_stack stack = {.depth = 0};
    pthread_mutex_lock(&gil);
    call(&stack, id, 0, FIRST);
    pthread_mutex_unlock(&gil);
    for (int i = 0; !atomic_load(&over); i = (i + 1) % ROUNDS)
        save_block(i);
    save_block(ROUNDS); /* while it records */
    pthread_mutex_lock(&gil);
    return_event(&stack);
    pml_frame_stack_free(&stack);
    pthread_mutex_unlock(&gil);
    return NULL;
}

static void profilers_start_and_stop_while_a_thread_saves(void)
{
    fresh_holders();
    pml_saved_tables_follow(true);
    subscribe(1, 0);
    subscriber[1][0].saved = pml_saved_tables_new(FIRST, LINES - 1, 1);
    run_at_once(start_and_stop, save);
    struct pml_saved_figures figures;
    CHECK(pml_saved_tables_read(subscriber[1][0].saved, FIRST, PML_CPU, &figures));
    pml_saved_tables_release(subscriber[1][0].saved);
    pml_saved_tables_follow(false);
    clear_holders();
}

/* ---- whether a block was lost, while blocks come ---- */

static void ask_whether_complete(void)
{
    struct pml_saved_table *table = pml_saved_tables_new(FIRST, LINES - 1, 1);
    for (int i = 0; i < ROUNDS; i++)
        CHECK(!pml_saved_tables_incomplete(table));
    pml_saved_tables_release(table);
}

static void *follow_and_forget(void *unused)
{
    while (!atomic_load(&over)) {
        pml_saved_tables_follow(true);
        pml_saved_tables_follow(false);
    }
    return NULL;
}

static void completeness_is_asked_while_blocks_are_forgotten(void)
{
    run_at_once(ask_whether_complete, follow_and_forget);
}

/* ---- a line that waits for backward ends, and its function goes, while backward saves ---- */

static void run_functions(void)
{
    struct pml_frame_stack stack = {.depth = 0};
    for (int i = 0; i < ROUNDS / 4; i++) {
        struct pml_saved_table *table = pml_saved_tables_new(FIRST, LINES - 1, 1);
        pml_saved_tables_lock();
        subscribe(1, 0);
        subscriber[1][0].saved = table;
        pml_saved_tables_unlock();
        begin(1, NULL);
        call(&stack, id, 0, FIRST);
        line_event(&stack, 3);
        end(1, &stack);
        pml_saved_tables_lock();
        pml_codes_unsubscribe(&key[0], &subscriber[1][0]);
        pml_saved_tables_unlock();
        pml_line_table_free(subscriber[1][0].table);
        pml_saved_tables_release(table);
        subscriber[1][0] = (struct pml_subscriber){.table = NULL};
        pml_frame_stack_cut(&stack, 0); /* the last that knows the function */
        pml_picture_recording_clear(&picture[1]);
    }
    pml_frame_stack_free(&stack);
}

static void *save_in_backward(void *unused)
{
    prctl(PR_SET_NAME, "pt_autograd_0");
    for (int i = 0; !atomic_load(&over); i = (i + 1) % ROUNDS) {
        pml_saved_tables_note(&(struct pml_saved_tensor){.storage = &memory[i], .bytes = 10, .backward = true});
        pml_saved_tables_freed(&memory[i]);
    }
    return NULL;
}

static void functions_go_while_backward_saves_for_them(void)
{
    fresh_holders();
    pml_saved_tables_follow(true);
    run_at_once(run_functions, save_in_backward);
    pml_saved_tables_follow(false);
    CHECK_INT(pml_saved_tables_blocks(), 0);
    clear_holders();
}

int main(void)
{
    RUN(functions_go_while_backward_saves_for_them);
    RUN(profilers_start_and_stop_while_a_thread_saves);
    RUN(completeness_is_asked_while_blocks_are_forgotten);
    RUN(owners_are_made_while_pictures_begin);
    return check_report();
}
