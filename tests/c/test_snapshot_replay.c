/* The replay of traces, against an allocator that is written down here: sizes, levels, and what was there before.
 *
 * The model places blocks as PyTorch's caching allocator does: the first gap that is large enough, split by its rules.
 * Its trace has what PyTorch's has; its levels are counted by itself.
 */
#include "snapshot/gapset.h"
#include "snapshot_files.h"

#define MB (UINT64_C(1) << 20)
#define MOST 400
#define SEGMENTS 12

struct block {
    uint64_t start, size, requested;
    bool live;
};

static struct file file;
static struct {
    struct block blocks[4 * MOST]; /* of all segments, by address */
    int count;
    struct {
        char action[16];
        uint64_t address, size;
        struct pml_memory_levels after;
    } events[4 * MOST];
    int used;
    struct pml_memory_levels now;
    uint64_t next_segment;
} model;

static void record(const char *action, uint64_t address, uint64_t size)
{
    strcpy(model.events[model.used].action, action);
    model.events[model.used].address = address;
    model.events[model.used].size = size;
    model.events[model.used++].after = model.now;
}

static void insert(int at, struct block block)
{
    memmove(model.blocks + at + 1, model.blocks + at, (size_t)(model.count - at) * sizeof *model.blocks);
    model.blocks[at] = block;
    model.count++;
}

static void erase(int at)
{
    memmove(model.blocks + at, model.blocks + at + 1, (size_t)(--model.count - at) * sizeof *model.blocks);
}

static uint64_t segment_of(uint64_t address)
{
    return address / (64 * MB);
}

static bool is_small(uint64_t address)
{
    return segment_of(address) % 2;
}

/* Each segment has 64 MB of addresses to itself: odd ones are small. */
static int new_segment(bool small)
{
    uint64_t size = small ? 2 * MB : 20 * MB;
    model.next_segment += 2;
    struct block block = {(model.next_segment + small) * 64 * MB, size, 0, false};
    int at = 0;
    while (at < model.count && model.blocks[at].start < block.start)
        at++;
    insert(at, block);
    model.now.reserved += size;
    record("segment_alloc", block.start, size);
    return at;
}

static void model_allocate(struct check_random *random)
{
    uint64_t requested = random_below(random, 2) ? 1 + (uint64_t)random_below(random, (int)MB)
                                                 : MB + 1 + (uint64_t)random_below(random, (int)(8 * MB));
    uint64_t rounded = (requested + 511) / 512 * 512;
    bool small = rounded <= MB;
    int at = 0;
    while (at < model.count &&
           (model.blocks[at].live || is_small(model.blocks[at].start) != small || model.blocks[at].size < rounded))
        at++;
    if (at == model.count)
        at = new_segment(small);
    struct block *block = &model.blocks[at];
    uint64_t rest = block->size - rounded;
    if (small ? rest >= 512 : rest > MB) {
        insert(at + 1, (struct block){block->start + rounded, rest, 0, false});
        block->size = rounded;
    }
    block->live = true;
    block->requested = requested;
    model.now.allocated += block->size;
    model.now.active += block->size;
    record("alloc", block->start, requested);
}

static void join(int at)
{
    if (at + 1 < model.count && !model.blocks[at].live && !model.blocks[at + 1].live &&
        segment_of(model.blocks[at].start) == segment_of(model.blocks[at + 1].start)) {
        model.blocks[at].size += model.blocks[at + 1].size;
        erase(at + 1);
    }
}

static void model_free(struct check_random *random)
{
    int at = random_below(random, model.count + 1), tries = model.count;
    while (tries-- > 0 && !model.blocks[at = (at + 1) % model.count].live) {
    }
    if (!model.count || !model.blocks[at].live)
        return;
    struct block *block = &model.blocks[at];
    block->live = false;
    model.now.allocated -= block->size;
    record("free_requested", block->start, block->requested);
    model.now.active -= block->size;
    record("free_completed", block->start, block->requested);
    join(at);
    if (at)
        join(at - 1);
}

static void run_model(struct check_random *random)
{
    memset(&model, 0, sizeof model);
    for (int i = 0; i < MOST; i++)
        if (random_below(random, 100) < 55)
            model_allocate(random);
        else
            model_free(random);
}

/* The file that PyTorch would write with its first events lost. */
static void write_file(int first)
{
    begin_file(&file);
    begin_list(&file, "segments");
    for (int i = 0; i < model.count;) {
        uint64_t segment = segment_of(model.blocks[i].start);
        begin_segment(&file, model.blocks[i].start, is_small(model.blocks[i].start) ? 2 * MB : 20 * MB);
        for (; i < model.count && segment_of(model.blocks[i].start) == segment; i++)
            put_block(&file, model.blocks[i].live ? "active_allocated" : "inactive", model.blocks[i].start,
                      model.blocks[i].size, model.blocks[i].requested);
        end_segment(&file);
    }
    put(&file, 'e');
    begin_traces(&file);
    for (int i = first; i < model.used; i++)
        put_event(&file, model.events[i].action, model.events[i].address, model.events[i].size);
    end_traces(&file);
    end_file(&file);
}

static void check_levels(const struct world *world, int first)
{
    struct pml_memory_levels now = world->replay.at_start;
    for (int i = first; i < model.used; i++) {
        pml_levels_step(&world->replay, (uint32_t)(i - first), &now);
        CHECK_INT(now.allocated, model.events[i].after.allocated);
        CHECK_INT(now.active, model.events[i].after.active);
        CHECK_INT(now.reserved, model.events[i].after.reserved);
    }
}

static void follows_a_program(struct check_random *random)
{
    struct world world;
    run_model(random);
    write_file(0);
    open_world(&world, &file);
    CHECK(world.replayed);
    CHECK_INT(world.replay.unequal + world.replay.guessed + world.replay.lost.used, 0);
    check_levels(&world, 0);
    close_world(&world);
}

/* What was made before and could not be seen is at most 1 MB larger than it is taken for. */
static void follows_a_program_from_its_middle(struct check_random *random)
{
    struct world world;
    run_model(random);
    int first = random_below(random, model.used);
    while (first && !strcmp(model.events[first].action, "free_completed"))
        first--;
    write_file(first);
    open_world(&world, &file);
    CHECK(world.replayed);
    CHECK_INT(world.replay.lost.used, 0);
    int64_t apart = first ? (int64_t)(model.events[first - 1].after.active - world.replay.at_start.active) : 0;
    CHECK_BETWEEN(0, apart, (int64_t)world.replay.guessed * (int64_t)MB);
    if (!world.replay.guessed) {
        CHECK_INT(world.replay.unequal, 0);
        check_levels(&world, first);
    }
    struct pml_memory_peak peaks[4];
    pml_levels_peaks(&world.replay, peaks);
    CHECK_INT(peaks[3].at.active, model.now.active);
    CHECK_INT(peaks[3].at.reserved, model.now.reserved);
    close_world(&world);
}

static void programs(void)
{
    check_seeds(follows_a_program, 60);
}

static void programs_from_their_middle(void)
{
    check_seeds(follows_a_program_from_its_middle, 200);
}

/* ---- single rules ---- */

static void rounds_as_the_allocator_does(void)
{
    struct pml_rules rules = {.largest_split = UINT64_MAX};
    CHECK_INT(pml_sizes_rounded(&rules, 0), 512);
    CHECK_INT(pml_sizes_rounded(&rules, 512), 512);
    CHECK_INT(pml_sizes_rounded(&rules, 513), 1024);
    for (int i = 0; i < 16; i++)
        rules.divisions[i] = 4;
    CHECK_INT(pml_sizes_rounded(&rules, 1200), 1536); /* too small for four steps */
    CHECK_INT(pml_sizes_rounded(&rules, 4096), 4096);
    CHECK_INT(pml_sizes_rounded(&rules, 4097), 5120);
    CHECK_INT(pml_sizes_rounded(&rules, 1200 * 1024), 1280 * 1024);
}

/* A free that the trace lost: the next allocation there ends the one before. */
static void ends_what_was_lost(void)
{
    struct world world;
    struct pml_memory_peak peaks[4];
    begin_file(&file);
    begin_list(&file, "segments");
    put(&file, 'e');
    begin_traces(&file);
    put_event(&file, "alloc", 4096, 512);
    put_event(&file, "alloc", 4096, 1024);
    put_event(&file, "free_completed", 4096, 1024);
    put_event(&file, "alloc", 8192, 2048);
    end_traces(&file);
    end_file(&file);
    open_world(&world, &file);
    CHECK(world.replayed);
    CHECK_INT(world.replay.lost.used, 2); /* the last one is not among the segments either */
    pml_levels_peaks(&world.replay, peaks);
    CHECK_INT(peaks[1].at.active, 1024);
    CHECK_INT(peaks[3].at.active, 0);
    close_world(&world);
}

static void finds_the_smallest_gap(struct check_random *random)
{
    struct pml_gapset set = {0};
    uint64_t sizes[64] = {0};
    for (int step = 0; step < 400; step++) {
        int at = random_below(random, 64);
        if (sizes[at]) {
            CHECK(pml_gapset_remove(&set, (uint64_t)at, sizes[at]));
            sizes[at] = 0;
        } else {
            sizes[at] = 1 + (uint64_t)random_below(random, 20);
            CHECK(pml_gapset_add(&set, (uint64_t)at, sizes[at]));
        }
        uint64_t wanted = (uint64_t)random_below(random, 22), start, size, best = 64;
        for (uint64_t i = 0; i < 64; i++)
            if (sizes[i] >= wanted && sizes[i] && (best == 64 || sizes[i] < sizes[best]))
                best = i;
        CHECK_INT(pml_gapset_find(&set, wanted, &start, &size), best < 64);
        if (best < 64) {
            CHECK_INT(start, best);
            CHECK_INT(size, sizes[best]);
        }
    }
    pml_gapset_drop(&set);
}

static void gaps(void)
{
    check_seeds(finds_the_smallest_gap, 30);
}

static void finds_medians_and_lows(void)
{
    struct world world;
    uint32_t groups[1] = {1};
    struct pml_figures figures[2];
    uint64_t lows[4];
    begin_file(&file);
    begin_traces(&file);
    for (uint64_t i = 1; i <= 5; i++)
        put_event(&file, "alloc", i * 4096, 512);
    for (uint64_t i = 5; i >= 1; i--)
        put_event(&file, "free_completed", i * 4096, 512);
    end_traces(&file);
    end_file(&file);
    open_world(&world, &file);
    CHECK(world.replayed);
    CHECK(pml_figures_find(&world.replay, groups, 2, 2, figures, lows));
    CHECK_INT(figures[1].times, 5);
    CHECK_INT(figures[1].peak, 5 * 512);
    CHECK_INT(figures[1].freed, 5);
    CHECK_INT(figures[1].median_life, 5); /* of 1, 3, 5, 7, 9 events */
    CHECK_INT(lows[2], 0);
    CHECK_INT(lows[3], 0);
    CHECK_INT(figures[0].times, 0);
    CHECK_INT(figures[0].median_life, -1);
    close_world(&world);
}

int main(void)
{
    RUN(programs);
    RUN(programs_from_their_middle);
    RUN(rounds_as_the_allocator_does);
    RUN(ends_what_was_lost);
    RUN(gaps);
    RUN(finds_medians_and_lows);
    return check_report();
}
