/* Snapshots with damage at random, read and replayed to the end: nothing crashes, hangs, or reads what it does not own.
 * Meant for the sanitizers; PML_SEED and PML_ROUNDS choose what is run.
 */
#include "snapshot_files.h"

static struct file file;

#define MB (UINT64_C(1) << 20)

static const char *const actions[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                      "segment_free", "segment_map",    "segment_unmap",  "oom",
                                      "snapshot",     "strange"};

static uint64_t random_size(struct check_random *random)
{
    static const uint64_t sizes[] = {0, 1, 512, 4000, MB, 2 * MB, 3 * MB, 20 * MB, UINT64_MAX, UINT64_MAX / 2};
    return random_below(random, 8) ? sizes[random_below(random, 8)] : sizes[random_below(random, 10)];
}

static uint64_t random_address(struct check_random *random)
{
    return random_below(random, 40) ? (uint64_t)random_below(random, 24) * MB : random_next(random);
}

static void make_random(struct check_random *random)
{
    static const char *const states[] = {"inactive", "active_allocated", "active_pending_free"};
    begin_file(&file);
    begin_list(&file, "segments");
    for (int i = random_below(random, 4); i > 0; i--) {
        begin_segment(&file, random_address(random), random_size(random));
        for (int j = random_below(random, 6); j > 0; j--)
            put_block(&file, states[random_below(random, 3)], random_address(random), random_size(random),
                      random_size(random));
        end_segment(&file);
    }
    put(&file, 'e');
    begin_traces(&file);
    for (int i = random_below(random, 120); i > 0; i--)
        put_event(&file, actions[random_below(random, random_below(random, 4) ? 3 : 10)], random_address(random),
                  random_size(random));
    end_traces(&file);
    end_file(&file);
}

static void damage(struct check_random *random)
{
    for (int i = random_below(random, 12); i > 0; i--) {
        size_t at = (size_t)random_below(random, (int)file.used);
        switch (random_below(random, 4)) {
        case 0: file.bytes[at] = (unsigned char)random_next(random); break;
        case 1: file.bytes[at] = "]}(ue.ah\x94\x86K"[random_below(random, 11)]; break;
        case 2: file.used = at + 1; break;
        default: {
            size_t from = (size_t)random_below(random, (int)file.used), count = file.used - (from > at ? from : at);
            memmove(file.bytes + at, file.bytes + from, count > 64 ? 64 : count);
        }
        }
    }
}

static void use(struct world *world)
{
    struct pml_replay *replay = &world->replay;
    size_t stacks = world->pickle.rows.stacks.stacks.used;
    uint32_t ends[3] = {replay->count / 3, replay->count / 2, replay->count};
    uint32_t *groups = calloc(stacks, sizeof *groups);
    struct pml_memory_stretch stretches[3];
    struct pml_memory_peak peaks[4];
    struct pml_figures figures[2];
    uint64_t lows[8], reserved[3];
    pml_memory_spans spans = {0};
    pml_levels_peaks(replay, peaks);
    pml_levels_stretches(replay, ends, 3, stretches);
    CHECK_INT(stretches[2].at.active <= peaks[1].at.active, 1);
    CHECK(groups && pml_figures_find(replay, groups, 2, 4, figures, lows));
    CHECK_INT(figures[0].live, peaks[3].at.active);
    CHECK(pml_expandable_reserved(replay, ends, 3, reserved));
    for (int i = 0; i < 3; i++)
        CHECK(pml_spans_at(replay, ends[i], &spans));
    PML_DROP(&spans);
    free(groups);
}

static void survives(struct check_random *random, bool damaged)
{
    struct world world;
    make_random(random);
    if (damaged)
        damage(random);
    file.chunk = random_below(random, 3) ? 0 : 1 + (size_t)random_below(random, 300);
    open_world(&world, &file);
    if (!damaged)
        CHECK(world.is_snapshot);
    if (world.replayed)
        use(&world);
    close_world(&world);
}

static void survives_strange_traces(struct check_random *random)
{
    survives(random, false);
}

static void survives_damage(struct check_random *random)
{
    survives(random, true);
}

static void traces(void)
{
    check_seeds(survives_strange_traces, 3000);
}

static void damages(void)
{
    check_seeds(survives_damage, 10000);
}

int main(void)
{
    RUN(traces);
    RUN(damages);
    return check_report();
}
