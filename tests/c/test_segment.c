/* Segments: which profiler gets which, stops in the middle, statistics; and random programs against a naive model that
 * keeps the level of every device after every event.
 */
#include "check.h"
#include "fresh.h"
#include "segment.h"

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

static void settle(bool sample)
{
    if (sample && pml_meter_ticks() != read_at) {
        read_statistics();
        read_at = pml_meter_ticks();
    }
    pml_meter_fold();
}

static void call(struct pml_stack *stack, const void *frame_id, int c, int line)
{
    struct pml_code *code = pml_codemap_find(&key[c]);
    bool sample = pml_segment_wants_sample(code, line);
    settle(sample);
    struct pml_frame *outer = pml_stack_top(stack);
    struct pml_frame *top = pml_stack_push(stack, frame_id, pml_code_retain(code));
    pml_segment_open(top, line, sample, outer);
}

static void line_event(struct pml_stack *stack, int line)
{
    struct pml_frame *top = pml_stack_top(stack);
    struct pml_frame *outer = stack->depth > 1 ? stack->frame[stack->depth - 2] : NULL;
    bool sample = pml_segment_wants_sample(top->code, line);
    settle(sample || top->sampled);
    pml_segment_record(top, NULL);
    if (outer && top->window.ticks != pml_meter_ticks())
        pml_window_absorb(&outer->window, &top->window);
    pml_segment_open(top, line, sample, outer);
    pml_segment_hit(top);
}

static void return_event(struct pml_stack *stack)
{
    settle(pml_stack_top(stack)->sampled);
    pml_segment_record(pml_stack_top(stack), NULL);
    pml_stack_pop(stack);
}

static void start(int r)
{
    settle(recorder[r].extras != 0);
    recorder[r].recording = true;
    recorder[r].started = ++pml_recording_starts;
}

static void stop(int r, struct pml_stack *stacks, int count)
{
    settle(recorder[r].extras != 0);
    for (int i = 0; i < count; i++)
        pml_segment_flush(&stacks[i], &recorder[r]);
    recorder[r].recording = false;
}

/* ---- statistics columns: one of each kind ---- */

enum { PEAK, LEVEL, COUNT, COLUMNS };
static int columns[COLUMNS] = {PEAK, LEVEL, COUNT};

static void read_nothing(void)
{
}

static void fresh(bool with_columns)
{
    fresh_meter();
    read_at = 0;
    read_statistics = read_nothing;
    pml_target_device = 1;
    if (pml_extra_count() == 0)
        for (int i = 0; i < COLUMNS; i++)
            pml_extra_add((enum pml_extra_kind)i);
    for (int r = 0; r < RECORDERS; r++)
        recorder[r] = (struct pml_recorder){.sample_runs = INT64_MAX,
                                            .extras = r == 0 && with_columns ? COLUMNS : 0,
                                            .extra_column = columns};
}

static void subscribe(int r, int c)
{
    subscriber[r][c] = (struct pml_subscriber){
        .recorder = &recorder[r],
        .table = pml_linetable_new(FIRST, LINES - 1, recorder[r].extras, recorder[r].extra_column),
    };
    CHECK(pml_codemap_subscribe(&key[c], &subscriber[r][c]));
}

static void unsubscribe_all(void)
{
    for (int r = 0; r < RECORDERS; r++)
        for (int c = 0; c < CODES; c++) {
            if (subscriber[r][c].table) {
                pml_codemap_unsubscribe(&key[c], &subscriber[r][c]);
                pml_linetable_free(subscriber[r][c].table);
            }
            subscriber[r][c].table = NULL;
        }
}

static const struct pml_line_stats *stats_of(int r, int c, int line, int device)
{
    return pml_linetable_stats(subscriber[r][c].table, line, 1 + device);
}

static uint64_t hits_of(int r, int c, int line)
{
    return subscriber[r][c].table->hits[line - FIRST];
}

/* ---- one thing at a time ---- */

static void a_line_gets_what_happened_until_the_next(void)
{
    /* GIVEN */
    fresh(false);
    struct pml_stack stack = {.depth = 0};
    subscribe(1, 0);
    start(1);
    /* WHEN */
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    report(1, 100, 100, 1000);
    line_event(&stack, 4);
    report(1, 50, 150, 1000);
    report(1, -100, 50, 1000);
    return_event(&stack);
    /* THEN */
    CHECK_INT(stats_of(1, 0, 3, 1)->net_last, 100);
    CHECK_INT(stats_of(1, 0, 3, 1)->peak[PML_ALLOCATED], 100);
    CHECK_INT(stats_of(1, 0, 4, 1)->net_last, -50);
    CHECK_INT(stats_of(1, 0, 4, 1)->peak[PML_ALLOCATED], 150);
    CHECK_INT(stats_of(1, 0, 4, 1)->gross, 50);
    CHECK_INT(hits_of(1, 0, 3), 1);
    CHECK_INT(hits_of(1, 0, 4), 1);
    CHECK_INT(hits_of(1, 0, 5), 0);
    pml_stack_free(&stack);
    unsubscribe_all();
}

static void a_called_functions_peak_belongs_to_the_calling_line(void)
{
    /* GIVEN line 3 calls a function of two lines */
    fresh(false);
    struct pml_stack stack = {.depth = 0};
    subscribe(1, 0);
    subscribe(1, 1);
    start(1);
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    call(&stack, &id[1], 1, 1);
    /* WHEN the peak is in the first line of the inner one */
    line_event(&stack, 5);
    pml_meter_move(PML_CPU, 500);
    pml_meter_move(PML_CPU, -500);
    line_event(&stack, 6);
    pml_meter_move(PML_CPU, 20);
    return_event(&stack);
    line_event(&stack, 4);
    return_event(&stack);
    /* THEN */
    CHECK_INT(stats_of(1, 1, 5, PML_CPU)->peak[PML_ALLOCATED], 500);
    CHECK_INT(stats_of(1, 1, 6, PML_CPU)->peak[PML_ALLOCATED], 20);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->peak[PML_ALLOCATED], 500);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->net_last, 20);
    CHECK_INT(stats_of(1, 0, 4, PML_CPU)->peak[PML_ALLOCATED], 20);
    pml_stack_free(&stack);
    unsubscribe_all();
}

static void a_profiler_gets_only_segments_that_opened_after_its_start(void)
{
    /* GIVEN */
    fresh(false);
    struct pml_stack stack = {.depth = 0};
    subscribe(1, 0);
    subscribe(2, 0);
    start(1);
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    pml_meter_move(PML_CPU, 5);
    /* WHEN the second starts within line 3 */
    start(2);
    line_event(&stack, 4);
    pml_meter_move(PML_CPU, 5);
    return_event(&stack);
    /* THEN */
    CHECK(stats_of(1, 0, 3, PML_CPU) != NULL);
    CHECK_POINTER(stats_of(2, 0, 3, PML_CPU), NULL);
    CHECK_INT(hits_of(2, 0, 3), 0);
    CHECK_INT(stats_of(2, 0, 4, PML_CPU)->runs, 1);
    pml_stack_free(&stack);
    unsubscribe_all();
}

static void a_profiler_that_stops_gets_what_is_open_in_all_frames(void)
{
    /* GIVEN two profilers, and two frames with an open line */
    fresh(false);
    struct pml_stack stack = {.depth = 0};
    for (int r = 1; r <= 2; r++) {
        subscribe(r, 0);
        subscribe(r, 1);
        start(r);
    }
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    call(&stack, &id[1], 1, 1);
    line_event(&stack, 5);
    pml_meter_move(PML_CPU, 70);
    pml_meter_move(PML_CPU, -60);
    /* WHEN */
    stop(1, &stack, 1);
    /* THEN */
    CHECK_INT(stats_of(1, 1, 5, PML_CPU)->peak[PML_ALLOCATED], 70);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->peak[PML_ALLOCATED], 70);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->net_last, 10);
    CHECK_POINTER(stats_of(2, 0, 3, PML_CPU), NULL);
    /* and the other goes on */
    pml_meter_move(PML_CPU, 90);
    return_event(&stack);
    return_event(&stack);
    CHECK_INT(stats_of(2, 0, 3, PML_CPU)->net_last, 100);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->runs, 1);
    pml_stack_free(&stack);
    unsubscribe_all();
}

static void a_profiler_that_starts_again_does_not_get_the_open_segment(void)
{
    fresh(false);
    struct pml_stack stack = {.depth = 0};
    subscribe(1, 0);
    start(1);
    call(&stack, id, 0, 1);
    line_event(&stack, 3);
    pml_meter_move(PML_CPU, 1);
    stop(1, &stack, 1);
    start(1);
    pml_meter_move(PML_CPU, 1);
    return_event(&stack);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->runs, 1);
    CHECK_INT(stats_of(1, 0, 3, PML_CPU)->net_sum, 1);
    pml_stack_free(&stack);
    unsubscribe_all();
}

static void a_code_is_recorded_while_any_profiler_records(void)
{
    fresh(false);
    subscribe(1, 0);
    subscribe(2, 0);
    struct pml_code *code = pml_codemap_find(&key[0]);
    CHECK(!pml_code_recorded(code));
    start(2);
    CHECK(pml_code_recorded(code));
    stop(2, NULL, 0);
    CHECK(!pml_code_recorded(code));
    unsubscribe_all();
}

static void a_sample_is_wanted_by_who_records_columns_of_the_line(void)
{
    /* GIVEN */
    fresh(true);
    recorder[0].sample_runs = 2;
    subscribe(0, 0);
    subscribe(1, 0);
    struct pml_code *code = pml_codemap_find(&key[0]);
    start(1);
    CHECK(!pml_segment_wants_sample(code, 3));
    /* WHEN */
    start(0);
    /* THEN for its lines, and until there were enough */
    CHECK(pml_segment_wants_sample(code, 3));
    CHECK(!pml_segment_wants_sample(code, 1));
    CHECK(!pml_segment_wants_sample(code, LINES));
    subscriber[0][0].table->sampled[3 - FIRST] = 1;
    CHECK(pml_segment_wants_sample(code, 3));
    subscriber[0][0].table->sampled[3 - FIRST] = 2;
    CHECK(!pml_segment_wants_sample(code, 3));
    CHECK(pml_segment_wants_sample(code, 4));
    unsubscribe_all();
}

/* ---- a hidden value on the device, as PyTorch's statistics would have ---- */

static int64_t hidden, hidden_peak, hidden_count;

static void read_hidden(void)
{
    pml_extra_sample(1, (int64_t[]){hidden, hidden, hidden_count}, (int64_t[]){hidden_peak, hidden, hidden_count});
    pml_meter_fold_extra(1);
    hidden_peak = hidden;
}

static void set_hidden(int64_t value)
{
    hidden = value;
    hidden_peak = hidden_peak < value ? value : hidden_peak;
    hidden_count++;
    report(1, 1, 1, 1);
}

static int64_t column_of(int c, int line, int column)
{
    return pml_linetable_extra(subscriber[0][c].table, line, 1 + 1)->value[column];
}

/* The reading that begins a sampled line also says what came before it: that must go to the frame around, and only there. */
static void a_sampled_line_does_not_get_what_came_before_it(void)
{
    /* GIVEN line 3 is sampled and calls a function whose first line is not */
    fresh(true);
    read_statistics = read_hidden;
    hidden = hidden_peak = hidden_count = 0;
    struct pml_stack stack = {.depth = 0};
    subscribe(0, 0);
    subscribe(0, 1);
    start(0);
    call(&stack, &id[0], 0, 1);
    line_event(&stack, 3);
    set_hidden(900);
    set_hidden(10);
    call(&stack, &id[1], 1, 1);
    /* WHEN nothing happens before its next, sampled line */
    line_event(&stack, 5);
    set_hidden(20);
    return_event(&stack);
    return_event(&stack);
    /* THEN */
    CHECK_INT(column_of(1, 5, PEAK), 20);
    CHECK_INT(column_of(1, 5, COUNT), 1);
    CHECK_INT(column_of(0, 3, PEAK), 900);
    CHECK_INT(column_of(0, 3, COUNT), 3);
    pml_stack_free(&stack);
    unsubscribe_all();
}

/* ---- random programs ---- */

#define STEPS 400
#define DEVICES 4
#define STACKS 3
#define DEPTH 12
#define MOST_SEGMENTS 20000

struct moment {
    struct pml_levels levels;
    int64_t hidden;
    int64_t hidden_count;
    bool used;
};

static struct moment history[STEPS + 1][DEVICES];
static int now;
static int last_reading;

/* A segment that a profiler was given. */
struct given {
    int recorder, code, line, start, end, target;
    bool sampled;
};

static struct given given[MOST_SEGMENTS];
static int given_count;

struct open_frame {
    int code, line, start;
    uint64_t opened;
};

static struct pml_stack stack[STACKS];
static struct open_frame frame[STACKS][DEPTH];
static int64_t hits[RECORDERS][CODES][LINES];

static int64_t level_at(int step, int device, int metric)
{
    return history[step][device].levels.level[metric];
}

static int64_t highest(int device, int metric, int from, int to)
{
    int64_t peak = level_at(from, device, metric);
    for (int i = from; i <= to; i++)
        peak = peak < level_at(i, device, metric) ? level_at(i, device, metric) : peak;
    return peak;
}

static int64_t highest_hidden(int device, int from, int to)
{
    int64_t peak = history[from][device].hidden;
    for (int i = from; i <= to; i++)
        peak = peak < history[i][device].hidden ? history[i][device].hidden : peak;
    return peak;
}

static void read_history(void)
{
    for (int d = 1; d < DEVICES; d++) {
        const struct moment *at = &history[now][d];
        if (!at->used)
            continue;
        pml_extra_sample(d, (int64_t[]){at->hidden, at->hidden, at->hidden_count},
                         (int64_t[]){highest_hidden(d, last_reading, now), at->hidden, at->hidden_count});
        pml_meter_fold_extra(d);
    }
    last_reading = now;
}

static struct moment *next_moment(int device)
{
    memcpy(history[now + 1], history[now], sizeof history[0]);
    now++;
    history[now][device].used = true;
    return &history[now][device];
}

static void allocate_or_free(struct check_random *random)
{
    int device = random_below(random, 1 + now * DEVICES / STEPS); /* they appear one after another */
    struct moment *at = next_moment(device);
    int64_t size = random_below(random, 1000) - 450;
    if (size < -at->levels.level[PML_ALLOCATED])
        size = -at->levels.level[PML_ALLOCATED];
    at->levels.level[PML_ALLOCATED] += size;
    at->levels.gross += size > 0 ? size : 0;
    at->levels.count += size > 0;
    at->hidden = random_below(random, 1000);
    at->hidden_count += random_below(random, 3);
    if (device == PML_CPU) {
        pml_meter_move(device, size);
        return;
    }
    at->levels.level[PML_ACTIVE] = at->levels.level[PML_ALLOCATED] + random_below(random, 100);
    at->levels.level[PML_RESERVED] = at->levels.level[PML_ACTIVE] + random_below(random, 300);
    pml_meter_set(device, size, at->levels.level);
}

static bool gets(int r, const struct open_frame *f)
{
    return subscriber[r][f->code].table && recorder[r].recording && recorder[r].started <= f->opened;
}

/* The segment of a frame ends, for all profilers or one. */
static void give(int s, int depth, int only)
{
    const struct open_frame *f = &frame[s][depth];
    for (int r = 0; r < RECORDERS; r++) {
        if (!gets(r, f) || (only >= 0 && r != only) || given_count == MOST_SEGMENTS)
            continue;
        given[given_count++] = (struct given){.recorder = r, .code = f->code, .line = f->line, .start = f->start,
                                              .end = now, .target = pml_target_device,
                                              .sampled = stack[s].frame[depth]->sampled};
    }
}

static void random_call(struct check_random *random, int s)
{
    int c = random_below(random, CODES), line = random_below(random, LINES + 1), depth = stack[s].depth;
    struct pml_code *code = pml_codemap_find(&key[c]);
    if (depth == DEPTH || !code || !pml_code_recorded(code))
        return;
    frame[s][depth] = (struct open_frame){.code = c, .line = line, .start = now, .opened = pml_recording_starts};
    call(&stack[s], &id[s * DEPTH + depth], c, line);
}

static void random_line(struct check_random *random, int s)
{
    int depth = stack[s].depth - 1, line = random_below(random, LINES + 1);
    give(s, depth, -1);
    struct open_frame *f = &frame[s][depth];
    *f = (struct open_frame){.code = f->code, .line = line, .start = now, .opened = pml_recording_starts};
    line_event(&stack[s], line);
    for (int r = 0; r < RECORDERS; r++)
        if (gets(r, f) && line < LINES)
            hits[r][f->code][line]++;
}

static void random_return(struct check_random *random, int s)
{
    if (random_below(random, 15) == 0) {
        settle(false);
        pml_stack_cut(&stack[s], random_below(random, stack[s].depth));
    } else {
        give(s, stack[s].depth - 1, -1);
        return_event(&stack[s]);
    }
}

static void step_stack(struct check_random *random)
{
    int s = random_below(random, STACKS), what = random_below(random, 8);
    if (stack[s].depth == 0 || what < 2)
        random_call(random, s);
    else if (what < 6)
        random_line(random, s);
    else
        random_return(random, s);
}

static void start_or_stop(struct check_random *random)
{
    int r = random_below(random, RECORDERS);
    if (!recorder[r].recording) {
        start(r);
        return;
    }
    for (int s = 0; s < STACKS; s++)
        for (int depth = stack[s].depth - 1; depth >= 0; depth--)
            give(s, depth, r);
    stop(r, stack, STACKS);
}

static void random_step(struct check_random *random)
{
    int what = random_below(random, 100);
    if (what < 45)
        allocate_or_free(random);
    else if (what < 95)
        step_stack(random);
    else if (what < 98)
        start_or_stop(random);
    else
        pml_target_device = random_below(random, DEVICES + 1);
}

/* ---- the model's figures ---- */

static void add_given(struct pml_line_stats *sum, const struct given *g, int device)
{
    static const struct moment nothing[1];
    const struct moment *from = device < DEVICES ? &history[g->start][device] : nothing;
    const struct moment *to = device < DEVICES ? &history[g->end][device] : nothing;
    int64_t net = to->levels.level[PML_ALLOCATED] - from->levels.level[PML_ALLOCATED];
    for (int m = 0; m < PML_METRICS; m++) {
        int64_t peak = device < DEVICES ? highest(device, m, g->start, g->end) : 0;
        sum->peak[m] = sum->peak[m] < peak ? peak : sum->peak[m];
        sum->level[m] = sum->level[m] < to->levels.level[m] ? to->levels.level[m] : sum->level[m];
    }
    sum->net_first = sum->runs ? sum->net_first : net;
    sum->net_max = sum->runs && sum->net_max > net ? sum->net_max : net;
    sum->net_sum += net;
    sum->net_last = net;
    sum->gross += to->levels.gross - from->levels.gross;
    sum->count += to->levels.count - from->levels.count;
    sum->runs++;
}

static void compare_stats(const struct pml_line_stats *got, const struct pml_line_stats *want)
{
    CHECK_INT(got->runs, want->runs);
    for (int m = 0; m < PML_METRICS; m++) {
        CHECK_INT(got->peak[m], want->peak[m]);
        CHECK_INT(got->level[m], want->level[m]);
    }
    CHECK_INT(got->net_first, want->net_first);
    CHECK_INT(got->net_max, want->net_max);
    CHECK_INT(got->net_last, want->net_last);
    CHECK_INT(got->net_sum, want->net_sum);
    CHECK_INT(got->gross, want->gross);
    CHECK_INT(got->count, want->count);
}

static bool belongs(const struct given *g, int r, int c, int line)
{
    return g->recorder == r && g->code == c && g->line == line;
}

static void compare_slot(int r, int c, int line, int slot)
{
    struct pml_line_stats want = {.runs = 0};
    bool used = slot == PML_TARGET_SLOT;
    for (int i = 0; i < given_count; i++)
        if (belongs(&given[i], r, c, line)) {
            add_given(&want, &given[i], slot == PML_TARGET_SLOT ? given[i].target : slot - 1);
            used = used || history[given[i].end][slot - 1].used;
        }
    const struct pml_line_stats *got = pml_linetable_stats(subscriber[r][c].table, line, slot);
    CHECK_INT(got != NULL, used && want.runs);
    if (got)
        compare_stats(got, &want);
}

static void add_columns(int64_t want[COLUMNS], bool first, const struct given *g, int device)
{
    const struct moment *from = &history[g->start][device], *to = &history[g->end][device];
    const int64_t value[COLUMNS] = {
        [PEAK] = highest_hidden(device, g->start, g->end),
        [LEVEL] = to->hidden,
        [COUNT] = to->hidden_count - from->hidden_count,
    };
    for (int i = 0; i < COLUMNS; i++)
        if (first || want[i] < value[i])
            want[i] = value[i];
}

/* Tables know devices up to the highest that was used. */
static bool exists(int step, int device)
{
    for (int d = device; d < DEVICES; d++)
        if (history[step][d].used)
            return true;
    return false;
}

/* A device's columns; for the target slot those of whichever device was the target. */
static void compare_columns(int c, int line, int slot)
{
    int64_t want[COLUMNS] = {0};
    bool known = false;
    for (int i = 0; i < given_count; i++) {
        const struct given *g = &given[i];
        int device = slot == PML_TARGET_SLOT ? g->target : slot - 1;
        if (!belongs(g, 0, c, line) || !g->sampled || device < 1 || device >= DEVICES || !exists(g->end, device))
            continue;
        add_columns(want, !known, g, device);
        known = true;
    }
    const struct pml_line_extra *got = pml_linetable_extra(subscriber[0][c].table, line, slot);
    CHECK_INT(got != NULL, known);
    for (int i = 0; got && known && i < COLUMNS; i++)
        CHECK_INT(got->value[i], want[i]);
}

static void compare_line(int r, int c, int line)
{
    CHECK_INT(hits_of(r, c, line), hits[r][c][line]);
    for (int slot = 0; slot <= DEVICES; slot++)
        compare_slot(r, c, line, slot);
    if (recorder[r].extras)
        for (int slot = 0; slot <= DEVICES; slot++)
            compare_columns(c, line, slot);
}

static void compare_tables(void)
{
    for (int r = 0; r < RECORDERS; r++)
        for (int c = 0; c < CODES; c++)
            for (int line = FIRST; subscriber[r][c].table && line < LINES; line++)
                compare_line(r, c, line);
}

static void begin_program(struct check_random *random)
{
    fresh(true);
    read_statistics = read_history;
    recorder[0].sample_runs = random_below(random, 3) ? 3 : INT64_MAX;
    memset(history, 0, sizeof history);
    memset(hits, 0, sizeof hits);
    now = last_reading = given_count = 0;
    static const int64_t none[PML_MAX_EXTRA];
    for (int d = 1; d < DEVICES; d++) /* as a device is whose statistics are all 0 */
        pml_extra_sample(d, none, none);
    for (int r = 0; r < RECORDERS; r++)
        for (int c = 0; c < CODES; c++)
            if (random_below(random, 4))
                subscribe(r, c);
}

static void programs_at_random(struct check_random *random)
{
    begin_program(random);
    while (now < STEPS)
        random_step(random);
    compare_tables();
    for (int s = 0; s < STACKS; s++)
        pml_stack_free(&stack[s]);
    for (int r = 0; r < RECORDERS; r++)
        CHECK(!recorder[r].failed);
    unsubscribe_all();
    CHECK_INT(linked_windows(), 0);
}

static void programs_agree_with_the_naive_model(void)
{
    check_seeds(programs_at_random, 300);
}

int main(void)
{
    RUN(a_line_gets_what_happened_until_the_next);
    RUN(a_called_functions_peak_belongs_to_the_calling_line);
    RUN(a_profiler_gets_only_segments_that_opened_after_its_start);
    RUN(a_profiler_that_stops_gets_what_is_open_in_all_frames);
    RUN(a_profiler_that_starts_again_does_not_get_the_open_segment);
    RUN(a_code_is_recorded_while_any_profiler_records);
    RUN(a_sample_is_wanted_by_who_records_columns_of_the_line);
    RUN(a_sampled_line_does_not_get_what_came_before_it);
    RUN(programs_agree_with_the_naive_model);
    return check_report();
}
