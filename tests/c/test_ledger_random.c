/* Who holds the peak: random programs of three profilers, recursion, two devices, clears, against a model that copies
 * all live blocks at each new maximum.
 */
#include "ledger_world.h"

#define BLOCKS 60
#define DEEPEST 12

struct chain {
    int depth;
    int code[DEEPEST];
    int line[DEEPEST];
};

struct block {
    int64_t size; /* 0: not live */
    struct chain chain;
};

struct frame {
    int code;
    int line;
    bool counts[RECORDERS];
};

static struct block blocks[2][BLOCKS];
static struct frame frames[DEEPEST];
static int depth;
static int64_t model_peak[RECORDERS][2];
static struct block at_peak[RECORDERS][2][BLOCKS];

/* Which profiler counts which code objects: some alone, some shared. */
static const bool counted[RECORDERS][CODES] = {{true, true, false}, {false, true, true}, {true, false, false}};

static bool is_open(int r)
{
    for (int i = 0; i < depth; i++)
        if (frames[i].counts[r])
            return true;
    return false;
}

static void see(int r, int d)
{
    if (is_open(r) && value_of(d) > model_peak[r][d]) {
        model_peak[r][d] = value_of(d);
        memcpy(at_peak[r][d], blocks[d], sizeof blocks[d]);
    }
}

static void see_all(void)
{
    for (int r = 0; r < RECORDERS; r++)
        for (int d = 0; d < 2; d++)
            if (pml_meter_used(d))
                see(r, d);
}

static void stand_on(int line)
{
    frames[depth - 1].line = line;
    for (int r = 0; r < RECORDERS; r++)
        frames[depth - 1].counts[r] = counted[r][frames[depth - 1].code];
    see_all();
}

static void toggle_block(struct check_random *random)
{
    int d = random_below(random, 2), i = random_below(random, BLOCKS);
    struct block *block = &blocks[d][i];
    if (block->size) {
        int64_t size = block->size;
        block->size = 0;
        release(d, i, size);
        return;
    }
    block->size = 1 + random_below(random, 1000);
    block->chain.depth = depth;
    for (int f = 0; f < depth; f++) {
        block->chain.code[f] = frames[f].code;
        block->chain.line[f] = frames[f].line;
    }
    allocate(d, i, block->size);
    see_all();
}

static void step(struct check_random *random, struct pml_frame_stack *stack)
{
    int kind = random_below(random, 20);
    if (kind < 12) {
        toggle_block(random);
    } else if (kind < 15 && depth) {
        int line = FIRST + random_below(random, LINES - FIRST);
        line_event(stack, line);
        stand_on(line);
    } else if (kind < 17 && depth < DEEPEST) {
        int c = random_below(random, CODES);
        call(stack, &id[depth], c, FIRST);
        frames[depth++] = (struct frame){.code = c};
        stand_on(FIRST);
    } else if (kind < 19 && depth) {
        return_event(stack);
        depth--;
    } else if (kind == 19 && random_below(random, 8) == 0) {
        int r = random_below(random, RECORDERS);
        forget_figures(r, stack);
        for (int d = 0; d < 2; d++)
            model_peak[r][d] = -1;
        for (int f = 0; f < depth; f++)
            frames[f].counts[r] = false;
    }
}

static int64_t model_held(int r, int d, int c, int line)
{
    int64_t bytes = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *block = &at_peak[r][d][i];
        for (int f = block->chain.depth - 1; block->size && f >= 0; f--)
            if (counted[r][block->chain.code[f]]) {
                bytes += block->chain.code[f] == c && block->chain.line[f] == line ? block->size : 0;
                break;
            }
    }
    return bytes;
}

static void compare(int r, int d)
{
    CHECK_INT(peak_of(r, d), model_peak[r][d]);
    if (model_peak[r][d] < 0)
        return;
    int64_t sum = 0;
    for (int c = 0; c < CODES; c++)
        for (int line = FIRST; line < LINES; line++) {
            CHECK_INT(owner_bytes_of(r, d, c, line), model_held(r, d, c, line));
            sum += owner_bytes_of(r, d, c, line);
        }
    CHECK_INT(held_in_all(r, d), sum);
    CHECK_BETWEEN(0, sum, model_peak[r][d]);
}

static void a_program_has_the_models_holders(struct check_random *random)
{
    struct pml_frame_stack stack = {.depth = 0};
    fresh_holders();
    memset(blocks, 0, sizeof blocks);
    depth = 0;
    for (int r = 0; r < RECORDERS; r++) {
        for (int c = 0; c < CODES; c++)
            if (counted[r][c])
                subscribe(r, c);
        begin(r, NULL);
        model_peak[r][0] = model_peak[r][1] = -1;
    }
    int steps = random_below(random, 600);
    for (int i = 0; i < steps; i++) {
        step(random, &stack);
        if (i % 50 == 0)
            for (int r = 0; r < RECORDERS; r++)
                compare(r, random_below(random, 2));
    }
    for (int r = 0; r < RECORDERS; r++)
        for (int d = 0; d < 2; d++)
            compare(r, d);
    pml_frame_stack_cut(&stack, 0);
    for (int r = 0; r < RECORDERS; r++) {
        end(r, &stack);
        for (int d = 0; d < 2; d++)
            compare(r, d);
    }
    pml_frame_stack_free(&stack);
    clear_holders();
}

int main(void)
{
    check_state.test = "a_program_has_the_models_holders";
    check_seeds(a_program_has_the_models_holders, 300);
    return check_report();
}
