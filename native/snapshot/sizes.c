/* The sizes of blocks: a trace has what the program asked for, the levels count whole blocks.
 *
 * A request is rounded up. Where the allocator finds a block too large, it splits it, except that it leaves up to 1 MiB
 * at a large block's end: such a block is as large as the gap that it was made in. So the gaps of all large segments
 * are followed, by their starts and their ends, as the allocator itself joins free neighbours. Blocks that live at the
 * end have their size in the file. What was made before the recording and is freed in it has the size that its
 * neighbours leave; if there are none to tell, it is the rounded one (PML_SIZE_GUESSED).
 */
#include "snapshot/sizes.h"

#include <stdlib.h>

#include "base/torch_abi.h"
#include "snapshot/addresses.h"
#include "snapshot/spans.h"

#define UNIT PML_TORCH_BLOCK_UNIT
#define SMALL PML_TORCH_SMALL_REQUEST
#define SMALL_SEGMENT PML_TORCH_SMALL_SEGMENT

struct gaps {
    struct pml_replay *replay;
    struct pml_addresses by_start; /* gap to its size */
    struct pml_addresses by_end;
    struct pml_addresses segments; /* followed segments: start to size. Gaps are not joined across a start */
    bool *unsplit;                 /* by setting: a pool whose blocks are never split (MemPool(no_split=True)) */
    PML_VECTOR(uint32_t) guessed;  /* allocations */
    bool has_expandable;
    uint32_t searches; /* left: looking for a gap that does not begin where it should */
};

static unsigned highest_bit(uint64_t value)
{
    unsigned bit = 0;
    while (value >>= 1)
        bit++;
    return bit;
}

static uint64_t divisions_of(const struct pml_rules *rules, uint64_t size)
{
    unsigned bit = highest_bit(size);
    unsigned interval = bit < 20 ? 0 : bit - 20;
    return rules->divisions[interval < 16 ? interval : 15];
}

/* Up to the next of `divisions` steps between two powers of two. */
static uint64_t round_to_division(uint64_t size, uint64_t divisions)
{
    uint64_t power = UINT64_C(1) << highest_bit(size);
    uint64_t step = power >> highest_bit(divisions);
    if (power == size)
        return size;
    if (!step)
        return power << 1;
    uint64_t floor = size & ~(step - 1);
    return floor == size ? size : floor + step;
}

uint64_t pml_sizes_rounded(const struct pml_rules *rules, uint64_t requested)
{
    if (requested < UNIT)
        return UNIT;
    uint64_t divisions = divisions_of(rules, requested);
    if (divisions > 1 && requested > UNIT * divisions)
        return round_to_division(requested, divisions);
    return requested > UINT64_MAX - UNIT ? requested : (requested + UNIT - 1) / UNIT * UNIT;
}

/* ---- gaps ---- */

static bool add_gap(struct gaps *gaps, uint64_t start, uint64_t size)
{
    return !size ||
           (pml_addresses_set(&gaps->by_start, start, size) && pml_addresses_set(&gaps->by_end, start + size, size));
}

static bool take_gap(struct gaps *gaps, uint64_t start, uint64_t *size)
{
    uint64_t same;
    return pml_addresses_take(&gaps->by_start, start, size) &&
           (pml_addresses_take(&gaps->by_end, start + *size, &same) || true);
}

static bool is_border(const struct gaps *gaps, uint64_t address)
{
    uint64_t size;
    return pml_addresses_get(&gaps->segments, address, &size);
}

static bool free_block(struct gaps *gaps, uint64_t start, uint64_t size)
{
    uint64_t other;
    if (!is_border(gaps, start + size) && take_gap(gaps, start + size, &other))
        size += other;
    if (!is_border(gaps, start) && pml_addresses_get(&gaps->by_end, start, &other)) {
        start -= other;
        size += other;
        take_gap(gaps, start, &other);
    }
    return add_gap(gaps, start, size);
}

static bool is_followed(const struct gaps *gaps, uint64_t size, uint32_t setting)
{
    return size > SMALL_SEGMENT || gaps->unsplit[setting];
}

static bool add_segment(struct gaps *gaps, uint64_t start, uint64_t size)
{
    return pml_addresses_set(&gaps->segments, start, size);
}

/* ---- one allocation ---- */

static bool is_split(const struct gaps *gaps, uint64_t rounded, uint64_t rest, uint32_t setting)
{
    if (gaps->unsplit[setting])
        return false;
    if (rounded <= SMALL || gaps->replay->rules->expandable)
        return rest >= UNIT;
    return rounded < gaps->replay->rules->largest_split && rest > SMALL;
}

/* The gap around an address that no gap begins at: the block before it, made before the recording, is larger than it
 * seemed, for its free neighbour was not there yet. */
static bool search_gap(struct gaps *gaps, uint64_t address, uint64_t *start)
{
    if (gaps->has_expandable || !gaps->searches)
        return false;
    gaps->searches--;
    for (size_t i = 0; i < gaps->by_start.count; i++) {
        const struct pml_address_slot *slot = &gaps->by_start.slots[i];
        if (slot->value && slot->address < address && address - slot->address < slot->value - 1) {
            *start = slot->address;
            return true;
        }
    }
    return false;
}

/* The guessed allocation that ends there grows. */
static void extend_guess(struct gaps *gaps, uint64_t end, uint64_t by, uint32_t moment)
{
    for (size_t i = 0; i < gaps->guessed.used; i++) {
        struct pml_allocation *before = &gaps->replay->allocations.items[gaps->guessed.items[i]];
        if (before->freed > moment && before->address + before->size == end)
            before->size += by;
    }
}

/* Take the gap at an address; if it begins before, what is before it belongs to somebody. */
static bool gap_at(struct gaps *gaps, uint64_t address, uint32_t moment, uint64_t *size)
{
    uint64_t start, before;
    if (take_gap(gaps, address, size))
        return true;
    if (!search_gap(gaps, address, &start) || !take_gap(gaps, start, size))
        return false;
    before = address - start;
    *size -= before;
    if (before <= SMALL)
        extend_guess(gaps, start, before, moment);
    return true;
}

static bool size_new(struct gaps *gaps, struct pml_allocation *allocation, uint32_t moment)
{
    uint64_t gap, rounded = pml_sizes_rounded(gaps->replay->rules, allocation->requested), size = rounded;
    if ((rounded > SMALL || gaps->unsplit[allocation->setting]) && gap_at(gaps, allocation->address, moment, &gap)) {
        allocation->flags |= PML_SIZE_TRACKED;
        size = gap < rounded || !is_split(gaps, rounded, gap - rounded, allocation->setting) ? gap : rounded;
        uint64_t real = allocation->flags & PML_SIZE_KNOWN ? allocation->size : size;
        if (real < gap && !add_gap(gaps, allocation->address + real, gap - real))
            return false;
    }
    if (!(allocation->flags & PML_SIZE_KNOWN))
        allocation->size = size;
    else
        gaps->replay->unequal += allocation->size != size;
    return true;
}

/* ---- the start of the recording ---- */

static int by_address(const void *a, const void *b)
{
    uint64_t left = (*(struct pml_allocation *const *)a)->address,
             right = (*(struct pml_allocation *const *)b)->address;
    return left < right ? -1 : left > right;
}

/* Whether a gap after a block belongs to it: in a large segment there is none of up to 1 MiB by itself, and a block
 * that is too large to be split has its segment alone. */
static bool is_its_own(const struct gaps *gaps, const struct pml_allocation *block, uint64_t gap)
{
    return (block->flags & PML_SIZE_GUESSED) && (gap <= SMALL || block->size >= gaps->replay->rules->largest_split);
}

static bool lay_out_span(struct gaps *gaps, const struct pml_memory_span *span, struct pml_allocation **blocks,
                         size_t *next, size_t count)
{
    uint64_t at = span->start;
    struct pml_allocation *last = NULL;
    while (*next < count && blocks[*next]->address < span->start)
        ++*next;
    for (; at < span->end;) {
        bool more = *next < count && blocks[*next]->address < span->end;
        uint64_t until = more ? blocks[*next]->address : span->end;
        if (until > at && last && is_its_own(gaps, last, until - at))
            last->size += until - at;
        else if (until > at && !add_gap(gaps, at, until - at))
            return false;
        if (!more)
            return true;
        last = blocks[(*next)++];
        last->flags |= PML_SIZE_TRACKED;
        at = last->address + last->size > at ? last->address + last->size : at;
    }
    return true;
}

static bool lay_out(struct gaps *gaps, const pml_memory_spans *spans, struct pml_allocation **blocks, size_t count)
{
    size_t next = 0;
    for (size_t i = 0; i < spans->used; i++) {
        const struct pml_memory_span *span = &spans->items[i];
        gaps->has_expandable |= span->expandable;
        if (span->expandable || !is_followed(gaps, span->end - span->start, span->setting))
            continue;
        if (!add_segment(gaps, span->start, span->end - span->start) || !lay_out_span(gaps, span, blocks, &next, count))
            return false;
    }
    return true;
}

static bool size_before(struct gaps *gaps, uint32_t number)
{
    struct pml_allocation *allocation = &gaps->replay->allocations.items[number];
    if (allocation->flags & PML_SIZE_KNOWN)
        return true;
    allocation->size = pml_sizes_rounded(gaps->replay->rules, allocation->requested);
    if (allocation->size <= SMALL || gaps->replay->rules->expandable)
        return true;
    allocation->flags |= PML_SIZE_GUESSED;
    gaps->replay->guessed++;
    return PML_PUSH(&gaps->guessed, number);
}

/* Sizes of what was there before; `blocks` gets them all, by address. */
static bool size_those_before(struct gaps *gaps, struct pml_allocation **blocks, size_t *count)
{
    struct pml_replay *replay = gaps->replay;
    *count = 0;
    for (size_t i = 0; i < replay->allocations.used; i++)
        if (replay->allocations.items[i].made == PML_BEFORE) {
            blocks[(*count)++] = &replay->allocations.items[i];
            if (!size_before(gaps, (uint32_t)i))
                return false;
        }
    qsort(blocks, *count, sizeof *blocks, by_address);
    return true;
}

static bool begin(struct gaps *gaps)
{
    struct pml_replay *replay = gaps->replay;
    pml_memory_spans spans = {0};
    struct pml_allocation **blocks = malloc((replay->allocations.used + 1) * sizeof *blocks);
    bool fine = blocks && pml_spans_at(replay, 0, &spans);
    size_t count = 0;
    fine = fine && size_those_before(gaps, blocks, &count) && lay_out(gaps, &spans, blocks, count);
    free(blocks);
    PML_DROP(&spans);
    return fine;
}

/* ---- the recording ---- */

static bool follow_segment(struct gaps *gaps, const struct pml_event *event, enum pml_action action)
{
    uint64_t size;
    if (action == PML_SEGMENT_MAP)
        gaps->has_expandable = true;
    if (!is_followed(gaps, event->size, pml_rows_setting_of(event)))
        return true;
    if (action == PML_SEGMENT_ALLOC)
        return add_segment(gaps, event->address, event->size) && add_gap(gaps, event->address, event->size);
    if (action == PML_SEGMENT_FREE && pml_addresses_take(&gaps->segments, event->address, &size))
        take_gap(gaps, event->address, &size);
    return true;
}

static bool follow(struct gaps *gaps)
{
    struct pml_replay *replay = gaps->replay;
    for (uint32_t i = 0; i < replay->count; i++) {
        enum pml_action action = pml_rows_action_of(&replay->events[i]);
        uint32_t number = replay->of_event.items[i];
        struct pml_allocation *allocation = number == PML_NO_ALLOCATION ? NULL : &replay->allocations.items[number];
        bool fine = true;
        if (!allocation)
            fine = follow_segment(gaps, &replay->events[i], action);
        else if (action == PML_ALLOC)
            fine = size_new(gaps, allocation, i + 1);
        else if (allocation->freed == i + 1 && (allocation->flags & PML_SIZE_TRACKED))
            fine = free_block(gaps, allocation->address, allocation->size);
        if (!fine)
            return false;
    }
    return true;
}

/* Pools in which a block of the file was not split though it could have been. */
static void find_unsplit(struct gaps *gaps)
{
    const struct pml_rows *rows = gaps->replay->rows;
    const struct pml_rules *rules = gaps->replay->rules;
    for (size_t i = 0; i < gaps->replay->allocations.used; i++) {
        const struct pml_allocation *allocation = &gaps->replay->allocations.items[i];
        const struct pml_setting *setting = &rows->settings.items[allocation->setting];
        uint64_t rounded = pml_sizes_rounded(rules, allocation->requested);
        bool is_private = setting->pool[0] || setting->pool[1];
        if ((allocation->flags & PML_SIZE_KNOWN) && is_private && rounded < rules->largest_split &&
            allocation->size > rounded && allocation->size - rounded > (rounded <= SMALL ? UNIT - 1 : SMALL))
            gaps->unsplit[allocation->setting] = true;
    }
}

/* The same pool and stream may be several settings, with other texts. */
static void spread_unsplit(struct gaps *gaps)
{
    const struct pml_rows *rows = gaps->replay->rows;
    for (size_t i = 0; i < rows->settings.used; i++)
        for (size_t j = 0; gaps->unsplit[i] && j < rows->settings.used; j++)
            if (rows->settings.items[i].pool[0] == rows->settings.items[j].pool[0] &&
                rows->settings.items[i].pool[1] == rows->settings.items[j].pool[1])
                gaps->unsplit[j] = true;
}

/* Pinned memory: a block is what was asked for, rounded by the allocator before it was recorded. */
static void size_host(struct pml_replay *replay)
{
    for (size_t i = 0; i < replay->allocations.used; i++)
        if (!(replay->allocations.items[i].flags & PML_SIZE_KNOWN))
            replay->allocations.items[i].size = replay->allocations.items[i].requested;
}

bool pml_sizes_find(struct pml_replay *replay)
{
    struct gaps gaps = {.replay = replay, .searches = 4096};
    if (replay->host) {
        size_host(replay);
        return true;
    }
    gaps.unsplit = calloc(replay->rows->settings.used + 1, sizeof *gaps.unsplit);
    if (!gaps.unsplit)
        return false;
    find_unsplit(&gaps);
    spread_unsplit(&gaps);
    bool fine = begin(&gaps) && follow(&gaps);
    free(gaps.unsplit);
    pml_addresses_drop(&gaps.by_start);
    pml_addresses_drop(&gaps.by_end);
    pml_addresses_drop(&gaps.segments);
    PML_DROP(&gaps.guessed);
    return fine;
}
