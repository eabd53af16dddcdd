/* What an allocator event costs with holders, beside the meter alone: nanoseconds an event, the best of interleaved
 * rounds. Build and run: sh benchmarks/holder_events.sh
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "holders/ledger.h"
#include "holders/picture_recording.h"
#include "holders/thread_line.h"
#include "frames/segment.h"

#define ROUNDS 60
#define EVENTS 20000
#define A_LINE 8 /* events between two looks, as the lines of a training step have */

static char key;
static struct pml_recorder recorder[2];
static struct pml_subscriber subscriber[2];
static struct pml_peak_picture picture[2] = {{.group = -1}, {.group = -1}};
static int64_t level;
static unsigned reports;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void report(const void *pointer, int64_t size, bool with_holders)
{
    level += size;
    const int64_t totals[PML_METRICS] = {level, level, 1 << 30};
    if (!with_holders) {
        pml_meter_set(1, size, totals);
        return;
    }
    pml_ledger_reported(1, pointer, size, level, 1 << 30);
    if (++reports % A_LINE == 0)
        pml_ledger_catch_up();
}

/* `live` blocks at a time, the oldest freed first. */
static double round_of(int live, bool with_holders)
{
    double start = now();
    for (int i = 0; i < EVENTS; i++) {
        if (i >= live)
            report((const void *)(uintptr_t)(0x7f0000000000 + (uint64_t)(i - live) * 512), -512, with_holders);
        report((const void *)(uintptr_t)(0x7f0000000000 + (uint64_t)i * 512), 512, with_holders);
    }
    for (int i = EVENTS - live; i < EVENTS; i++)
        report((const void *)(uintptr_t)(0x7f0000000000 + (uint64_t)i * 512), -512, with_holders);
    return (now() - start) / (2 * EVENTS);
}

static void record(int r)
{
    recorder[r] = (struct pml_recorder){.recording = false};
    subscriber[r] = (struct pml_subscriber){.recorder = &recorder[r], .table = pml_line_table_new(1, 10, 0, NULL)};
    pml_codes_subscribe(&key, &subscriber[r]);
    pml_picture_recording_start(&picture[r], &recorder[r]);
    recorder[r].recording = true;
    recorder[r].started = pml_moment_next();
    pml_codes_regroup();
}

static void compare(const char *name, int live)
{
    double best[2] = {1e9, 1e9};
    for (int i = 0; i < ROUNDS; i++)
        for (int holders = 0; holders < 2; holders++) {
            double taken = round_of(live, holders);
            best[holders] = taken < best[holders] ? taken : best[holders];
        }
    printf("%-44s meter alone %5.1f ns   with holders %5.1f ns   difference %5.1f ns\n", name, best[0], best[1],
           best[1] - best[0]);
}

/* The C library's locks are cheaper in a program of one thread, which no program with PyTorch is. */
static void *idle(void *nothing)
{
    pause();
    return nothing;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    static struct pml_frame_stack stack;
    static char id;
    record(0);
    struct pml_frame *frame = pml_frame_stack_push(&stack, &id, pml_codes_retain(pml_codes_find(&key)));
    pml_segment_open(frame, 3, false, NULL);
    compare("one profiler, 1 block live", 1);
    compare("one profiler, 1,000 blocks live", 1000);
    compare("one profiler, 10,000 blocks live", 10000);
    record(1);
    pml_segment_open(frame, 4, false, NULL);
    compare("two profilers, 1,000 blocks live", 1000);
    pml_frame_stack_pop(&stack);
    compare("no profiled function runs", 1000);
    return 0;
}
