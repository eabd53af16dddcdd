/* A small world around the unit "segment": what the hook and the tracer do at each event, with three profilers, three
 * code objects, and statistics columns of each kind. For the one program that includes it.
 */
#ifndef PML_SEGMENT_WORLD_H
#define PML_SEGMENT_WORLD_H

#include "base/moment.h"
#include "check.h"
#include "fresh.h"
#include "holders/ledger.h"
#include "frames/segment.h"

#define LINES 8
#define FIRST 2 /* tables cover lines FIRST to LINES - 1: the others are outside */
#define CODES 3
#define RECORDERS 3

static char key[CODES];
static char id[64];
static struct pml_recorder recorder[RECORDERS];
static struct pml_subscriber subscriber[RECORDERS][CODES];
static uint64_t read_at; /* the meter's ticks at the last reading of statistics */
static void (*read_statistics)(void);

/* ---- what the hook and the tracer do around the unit ---- */

static inline void synchronise(bool sample)
{
    if (sample && pml_meter_ticks() != read_at) {
        read_statistics();
        read_at = pml_meter_ticks();
    }
    pml_ledger_fold();
}

static inline void call(struct pml_frame_stack *stack, const void *frame_id, int c, int line)
{
    struct pml_code *code = pml_codes_find(&key[c]);
    bool sample = pml_segment_wants_sample(code, line);
    synchronise(sample);
    struct pml_frame *outer = pml_frame_stack_top(stack);
    struct pml_frame *top = pml_frame_stack_push(stack, frame_id, pml_codes_retain(code));
    pml_segment_open(top, line, sample, outer);
}

static inline void line_event(struct pml_frame_stack *stack, int line)
{
    struct pml_frame *top = pml_frame_stack_top(stack);
    struct pml_frame *outer = stack->depth > 1 ? stack->frame[stack->depth - 2] : NULL;
    bool sample = pml_segment_wants_sample(top->code, line);
    synchronise(sample || top->sampled);
    pml_segment_next(top, line, sample, outer);
}

static inline void return_event(struct pml_frame_stack *stack)
{
    synchronise(pml_frame_stack_top(stack)->sampled);
    pml_segment_close(pml_frame_stack_top(stack));
    pml_frame_stack_pop(stack);
}

static inline void start(int r)
{
    synchronise(recorder[r].stat_columns != 0);
    recorder[r].recording = true;
    recorder[r].started = pml_moment_next();
}

static inline void stop(int r, struct pml_frame_stack *stacks, int count)
{
    synchronise(recorder[r].stat_columns != 0);
    for (int i = 0; i < count; i++)
        pml_segment_flush(&stacks[i], &recorder[r]);
    recorder[r].recording = false;
}

/* ---- statistics columns: one of each kind ---- */

enum { PEAK, LEVEL, COUNT, COLUMNS };
static int columns[COLUMNS] = {PEAK, LEVEL, COUNT};

static inline void read_nothing(void)
{
}

static inline void fresh(bool with_columns)
{
    fresh_meter();
    read_at = 0;
    read_statistics = read_nothing;
    pml_segment_target_device = 1;
    if (pml_stat_columns_count() == 0)
        for (int i = 0; i < COLUMNS; i++)
            pml_stat_columns_add((enum pml_stat_column_kind)i);
    for (int r = 0; r < RECORDERS; r++)
        recorder[r] = (struct pml_recorder){
            .sample_runs = INT64_MAX, .stat_columns = r == 0 && with_columns ? COLUMNS : 0, .stat_column_ids = columns};
}

static inline void subscribe(int r, int c)
{
    subscriber[r][c] = (struct pml_subscriber){
        .recorder = &recorder[r],
        .table = pml_line_table_new(FIRST, LINES - 1, recorder[r].stat_columns, recorder[r].stat_column_ids),
    };
    CHECK(pml_codes_subscribe(&key[c], &subscriber[r][c]));
}

static inline void unsubscribe_all(void)
{
    for (int r = 0; r < RECORDERS; r++)
        for (int c = 0; c < CODES; c++) {
            if (subscriber[r][c].table) {
                pml_codes_unsubscribe(&key[c], &subscriber[r][c]);
                pml_line_table_free(subscriber[r][c].table);
            }
            subscriber[r][c].table = NULL;
        }
}

static inline const struct pml_line_stats *stats_of(int r, int c, int line, int device)
{
    return pml_line_table_stats(subscriber[r][c].table, line, 1 + device);
}

static inline uint64_t hits_of(int r, int c, int line)
{
    return subscriber[r][c].table->line[line - FIRST].hits;
}

#endif
