/* Random programs of calls, lines, returns, lost returns on three stacks, with profilers that start and stop, against
 * a naive model that keeps the level of every device after every event.
 */
#include "segment_world.h"

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

static struct pml_frame_stack stack[STACKS];
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
        pml_stat_columns_sample(d, (int64_t[]){at->hidden, at->hidden, at->hidden_count},
                                (int64_t[]){highest_hidden(d, last_reading, now), at->hidden, at->hidden_count});
        pml_window_fold_columns(d);
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
        given[given_count++] = (struct given){.recorder = r,
                                              .code = f->code,
                                              .line = f->line,
                                              .start = f->start,
                                              .end = now,
                                              .target = pml_segment_target_device,
                                              .sampled = stack[s].frame[depth]->sampled};
    }
}

static void random_call(struct check_random *random, int s)
{
    int c = random_below(random, CODES), line = random_below(random, LINES + 1), depth = stack[s].depth;
    struct pml_code *code = pml_codes_find(&key[c]);
    if (depth == DEPTH || !code || !pml_codes_recorded(code))
        return;
    frame[s][depth] = (struct open_frame){.code = c, .line = line, .start = now, .opened = pml_moment_now()};
    call(&stack[s], &id[s * DEPTH + depth], c, line);
}

static void random_line(struct check_random *random, int s)
{
    int depth = stack[s].depth - 1, line = random_below(random, LINES + 1);
    give(s, depth, -1);
    struct open_frame *f = &frame[s][depth];
    *f = (struct open_frame){.code = f->code, .line = line, .start = now, .opened = pml_moment_now()};
    line_event(&stack[s], line);
    for (int r = 0; r < RECORDERS; r++)
        if (gets(r, f) && line < LINES)
            hits[r][f->code][line]++;
}

static void random_return(struct check_random *random, int s)
{
    if (random_below(random, 15) == 0) {
        synchronise(false);
        pml_frame_stack_cut(&stack[s], random_below(random, stack[s].depth));
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
        pml_segment_target_device = random_below(random, DEVICES + 1);
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
    sum->net_later_max = sum->runs > 1 && sum->net_later_max > net ? sum->net_later_max : sum->runs ? net : 0;
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
    CHECK_INT(got->net_later_max, want->net_later_max);
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
    const struct pml_line_stats *got = pml_line_table_stats(subscriber[r][c].table, line, slot);
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
    const struct pml_line_columns *got = pml_line_table_columns(subscriber[0][c].table, line, slot);
    CHECK_INT(got != NULL, known);
    for (int i = 0; got && known && i < COLUMNS; i++)
        CHECK_INT(got->value[i], want[i]);
}

static void compare_line(int r, int c, int line)
{
    CHECK_INT(hits_of(r, c, line), hits[r][c][line]);
    for (int slot = 0; slot <= DEVICES; slot++)
        compare_slot(r, c, line, slot);
    if (recorder[r].stat_columns)
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
    static const int64_t none[PML_MAX_STAT_COLUMNS];
    for (int d = 1; d < DEVICES; d++) /* as a device is whose statistics are all 0 */
        pml_stat_columns_sample(d, none, none);
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
        pml_frame_stack_free(&stack[s]);
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
    RUN(programs_agree_with_the_naive_model);
    return check_report();
}
