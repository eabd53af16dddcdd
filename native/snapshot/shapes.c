/* What the dicts and lists of a pickle become: rows, frames and stacks where they have the form, plain values
 * elsewhere. */
#include "snapshot/shapes.h"

#include <string.h>

/* A snapshot has a few settings and annotations besides its rows. */
#define MOST_OTHER ((size_t)1 << 24)

/* A dict's values by known key. */
struct fields {
    uint64_t present;
    bool strange; /* a key that is no text */
    pml_value value[PML_NAMES_KEY_COUNT];
};

#define HAS(fields, name) ((fields)->present >> PML_NAME_##name & 1)

static void sort_out(struct fields *fields, const pml_value *pairs, size_t count)
{
    fields->present = 0;
    fields->strange = false;
    for (size_t i = 0; i < count; i += 2) {
        uint64_t key = pml_values_payload(pairs[i]);
        if (pml_values_tag(pairs[i]) != PML_STRING)
            fields->strange = true;
        else if (key < PML_NAMES_KEY_COUNT) {
            fields->present |= UINT64_C(1) << key;
            fields->value[key] = pairs[i + 1];
        }
    }
}

static int64_t number_of(const struct pml_pickle *pickle, const struct fields *fields, enum pml_name name)
{
    int64_t number = 0;
    if (fields->present >> name & 1)
        pml_values_as_integer(&pickle->values, fields->value[name], &number);
    return number;
}

static uint32_t text_of(const struct fields *fields, enum pml_name name)
{
    if (!(fields->present >> name & 1) || pml_values_tag(fields->value[name]) != PML_STRING)
        return PML_NAME_EMPTY;
    return (uint32_t)pml_values_payload(fields->value[name]);
}

static uint32_t stack_of(const struct pml_pickle *pickle, const struct fields *fields)
{
    uint64_t payload = 0;
    if (!HAS(fields, FRAMES) ||
        pml_values_kind(&pickle->values, fields->value[PML_NAME_FRAMES], &payload) != PML_IS_STACK)
        return 0;
    return (uint32_t)payload;
}

static uint32_t setting_of(struct pml_pickle *pickle, const struct fields *fields, enum pml_name pool)
{
    struct pml_setting setting = {.stream = number_of(pickle, fields, PML_NAME_STREAM),
                                  .context = text_of(fields, PML_NAME_CONTEXT),
                                  .metadata = text_of(fields, PML_NAME_METADATA)};
    if (fields->present >> pool & 1 && pml_values_tag(fields->value[pool]) == PML_PAIR) {
        struct pml_pair pair = pickle->values.pairs.items[pml_values_payload(fields->value[pool])];
        setting.pool[0] = pair.first;
        setting.pool[1] = pair.second;
    }
    return pml_rows_setting(&pickle->rows, &setting);
}

static bool note_unknown_keys(struct pml_pickle *pickle, const pml_value *pairs, size_t count)
{
    for (size_t i = 0; i < count; i += 2)
        if (pml_values_tag(pairs[i]) == PML_STRING && pml_values_payload(pairs[i]) >= PML_NAMES_KEY_COUNT &&
            !pml_rows_note_unknown(&pickle->rows, (uint32_t)pml_values_payload(pairs[i])))
            return false;
    return true;
}

static enum pml_action action_of(uint32_t name)
{
    switch (name) {
    case PML_NAME_V_ALLOC: return PML_ALLOC;
    case PML_NAME_V_FREE_REQUESTED: return PML_FREE_REQUESTED;
    case PML_NAME_V_FREE: /* before both were told apart */
    case PML_NAME_V_FREE_COMPLETED: return PML_FREE_COMPLETED;
    case PML_NAME_V_SEGMENT_ALLOC: return PML_SEGMENT_ALLOC;
    case PML_NAME_V_SEGMENT_FREE: return PML_SEGMENT_FREE;
    case PML_NAME_V_SEGMENT_MAP: return PML_SEGMENT_MAP;
    case PML_NAME_V_SEGMENT_UNMAP: return PML_SEGMENT_UNMAP;
    case PML_NAME_V_OOM: return PML_OOM;
    case PML_NAME_V_SNAPSHOT: return PML_SNAPSHOT_TAKEN;
    default: return PML_OTHER_ACTION;
    }
}

static bool add_event(struct pml_pickle *pickle, const struct fields *fields)
{
    uint32_t name = text_of(fields, PML_NAME_ACTION);
    enum pml_action action = action_of(name);
    uint32_t setting = setting_of(pickle, fields, PML_NAME_POOL);
    struct pml_event event = {
        .address = (uint64_t)number_of(pickle, fields, HAS(fields, ADDR) ? PML_NAME_ADDR : PML_NAME_DEVICE_FREE),
        .size = (uint64_t)number_of(pickle, fields, PML_NAME_SIZE),
        .time = number_of(pickle, fields, PML_NAME_TIME),
        .stack = stack_of(pickle, fields),
        .packed = (uint32_t)action << PML_SETTING_BITS | (setting & ((1u << PML_SETTING_BITS) - 1)),
    };
    if (event.time)
        pickle->rows.timed = true;
    if (action == PML_OTHER_ACTION && name != PML_NAME_V_USER_DEFINED && !pml_rows_note_unknown(&pickle->rows, name))
        return false;
    return setting != PML_INDEX_NONE && PML_PUSH(&pickle->rows.events, event);
}

static enum pml_block_state state_of(uint32_t name)
{
    if (name == PML_NAME_V_ACTIVE)
        return PML_BLOCK_LIVE;
    return name == PML_NAME_V_PENDING || name == PML_NAME_V_AWAITING ? PML_BLOCK_PENDING : PML_BLOCK_FREE;
}

static bool add_block(struct pml_pickle *pickle, const struct fields *fields)
{
    struct pml_block block = {
        .address = (uint64_t)number_of(pickle, fields, PML_NAME_ADDRESS),
        .size = (uint64_t)number_of(pickle, fields, PML_NAME_SIZE),
        .requested = (uint64_t)number_of(pickle, fields, PML_NAME_REQUESTED),
        .stack = stack_of(pickle, fields),
        .state = state_of(text_of(fields, PML_NAME_STATE)),
    };
    return PML_PUSH(&pickle->rows.blocks, block);
}

static bool add_segment(struct pml_pickle *pickle, const struct fields *fields)
{
    struct pml_segment segment = {
        .address = (uint64_t)number_of(pickle, fields, PML_NAME_ADDRESS),
        .size = (uint64_t)number_of(pickle, fields, PML_NAME_TOTAL),
        .stack = stack_of(pickle, fields),
        .setting = setting_of(pickle, fields, PML_NAME_SEGMENT_POOL),
        .device = (int32_t)number_of(pickle, fields, PML_NAME_DEVICE),
        .large = text_of(fields, PML_NAME_SEGMENT_TYPE) == PML_NAME_V_LARGE,
        .expandable = number_of(pickle, fields, PML_NAME_EXPANDABLE) != 0,
    };
    uint64_t range = 0;
    if (HAS(fields, BLOCKS) &&
        pml_values_kind(&pickle->values, fields->value[PML_NAME_BLOCKS], &range) == PML_IS_RANGE &&
        pickle->values.ranges.items[range].kind == PML_IS_BLOCK) {
        segment.first_block = pickle->values.ranges.items[range].first;
        segment.blocks = (uint32_t)pickle->values.ranges.items[range].count;
    }
    return segment.setting != PML_INDEX_NONE && PML_PUSH(&pickle->rows.segments, segment);
}

/* What a dict with these keys is. */
static enum pml_kind kind_of(const struct fields *fields)
{
    if (fields->strange)
        return PML_IS_DICT;
    if (HAS(fields, ACTION))
        return PML_IS_EVENT;
    if (HAS(fields, FILENAME) && HAS(fields, LINE))
        return PML_IS_FRAME;
    if (HAS(fields, TOTAL))
        return PML_IS_SEGMENT;
    return HAS(fields, STATE) && HAS(fields, SIZE) ? PML_IS_BLOCK : PML_IS_DICT;
}

/* Add the row; false without memory. */
static bool add_row(struct pml_pickle *pickle, enum pml_kind kind, const struct fields *fields, uint64_t *number)
{
    struct pml_rows *rows = &pickle->rows;
    if (kind == PML_IS_FRAME) {
        struct pml_frame_stack_frame frame = {text_of(fields, PML_NAME_NAME), text_of(fields, PML_NAME_FILENAME),
                                              (int32_t)number_of(pickle, fields, PML_NAME_LINE)};
        *number = pml_stacks_frame(&rows->stacks, frame);
        return *number != PML_INDEX_NONE;
    }
    *number = kind == PML_IS_EVENT ? rows->events.used : kind == PML_IS_BLOCK ? rows->blocks.used : rows->segments.used;
    return kind == PML_IS_EVENT   ? add_event(pickle, fields)
           : kind == PML_IS_BLOCK ? add_block(pickle, fields)
                                  : add_segment(pickle, fields);
}

/* Keep values as they are, in an object that is a list or a dict. */
static enum pml_trouble keep(struct pml_pickle *pickle, pml_value object, enum pml_kind kind, const pml_value *values,
                             size_t count)
{
    struct pml_values *all = &pickle->values;
    uint64_t payload = 0;
    if (all->other + count > MOST_OTHER)
        return PML_TROUBLE_TOO_MUCH;
    if (pml_values_kind(all, object, &payload) != kind) {
        payload = all->items.used;
        if (!PML_PUSH(&all->items, ((pml_items){0})))
            return PML_TROUBLE_NO_MEMORY;
        pml_values_become(all, object, kind, payload);
    }
    pml_items *items = &all->items.items[payload];
    if (!PML_RESERVE(items, count))
        return PML_TROUBLE_NO_MEMORY;
    memcpy(items->items + items->used, values, count * sizeof *values);
    items->used += count;
    all->other += count;
    return PML_FINE;
}

enum pml_trouble pml_shapes_pairs(struct pml_pickle *pickle, pml_value dict, const pml_value *pairs, size_t count)
{
    uint64_t payload = 0;
    enum pml_kind now = pml_values_kind(&pickle->values, dict, &payload);
    if (pml_values_tag(dict) != PML_OBJECT || (now != PML_EMPTY_DICT && now != PML_IS_DICT) || count % 2)
        return PML_TROUBLE_DAMAGED;
    if (!count)
        return PML_FINE;
    struct fields fields;
    if (now == PML_EMPTY_DICT)
        sort_out(&fields, pairs, count);
    enum pml_kind kind = now == PML_EMPTY_DICT ? kind_of(&fields) : PML_IS_DICT;
    if (kind == PML_IS_DICT)
        return keep(pickle, dict, PML_IS_DICT, pairs, count);
    size_t known = (size_t)__builtin_popcountll(fields.present);
    if ((kind == PML_IS_EVENT && known != count / 2 && !note_unknown_keys(pickle, pairs, count)) ||
        !add_row(pickle, kind, &fields, &payload))
        return PML_TROUBLE_NO_MEMORY;
    pml_values_become(&pickle->values, dict, kind, payload);
    pickle->values.useful++;
    return PML_FINE;
}

/* ---- lists ---- */

/* How many values from the start are rows of `kind` that follow each other, from `first` on. */
static size_t consecutive(const struct pml_values *values, const pml_value *items, size_t count, enum pml_kind kind,
                          uint64_t first)
{
    size_t i = 0;
    for (uint64_t row = 0; i < count; i++)
        if (pml_values_kind(values, items[i], &row) != kind || row != first + i)
            break;
    return i;
}

/* A range as a list of single rows again: it goes on with something else. */
static enum pml_trouble unpack(struct pml_pickle *pickle, pml_value list, struct pml_range range)
{
    pml_values_become(&pickle->values, list, PML_EMPTY_LIST, 0);
    for (uint64_t i = 0; i < range.count; i++) {
        bool failed = false;
        pml_value row = pml_values_container(&pickle->values, PML_EMPTY_DICT, &failed);
        if (failed)
            return PML_TROUBLE_NO_MEMORY;
        pml_values_become(&pickle->values, row, range.kind, range.first + i);
        enum pml_trouble trouble = keep(pickle, list, PML_IS_LIST, &row, 1);
        if (trouble)
            return trouble;
    }
    return PML_FINE;
}

static enum pml_trouble append_to_range(struct pml_pickle *pickle, pml_value list, uint64_t number,
                                        const pml_value *items, size_t count)
{
    struct pml_range *range = &pickle->values.ranges.items[number];
    if (consecutive(&pickle->values, items, count, range->kind, range->first + range->count) == count) {
        range->count += count;
        return PML_FINE;
    }
    enum pml_trouble trouble = unpack(pickle, list, *range);
    return trouble ? trouble : keep(pickle, list, PML_IS_LIST, items, count);
}

static enum pml_trouble append_frames(struct pml_pickle *pickle, pml_value list, uint64_t stack, const pml_value *items,
                                      size_t count)
{
    uint32_t *frames = malloc(count * sizeof *frames);
    if (!frames)
        return PML_TROUBLE_NO_MEMORY;
    bool all = true;
    for (size_t i = 0; i < count && all; i++) {
        uint64_t frame = 0;
        all = pml_values_kind(&pickle->values, items[i], &frame) == PML_IS_FRAME;
        frames[i] = (uint32_t)frame;
    }
    uint32_t made = all ? pml_stacks_extended(&pickle->rows.stacks, (uint32_t)stack, frames, (uint32_t)count) : 0;
    free(frames);
    if (!all)
        return PML_TROUBLE_DAMAGED;
    if (made == PML_INDEX_NONE)
        return PML_TROUBLE_NO_MEMORY;
    pml_values_become(&pickle->values, list, PML_IS_STACK, made);
    pickle->values.useful++;
    return PML_FINE;
}

static enum pml_trouble begin_list(struct pml_pickle *pickle, pml_value list, const pml_value *items, size_t count)
{
    uint64_t first = 0;
    enum pml_kind kind = pml_values_kind(&pickle->values, items[0], &first);
    if (kind == PML_IS_FRAME)
        return append_frames(pickle, list, 0, items, count);
    if (kind != PML_IS_EVENT && kind != PML_IS_BLOCK && kind != PML_IS_SEGMENT)
        return keep(pickle, list, PML_IS_LIST, items, count);
    if (consecutive(&pickle->values, items, count, kind, first) != count)
        return keep(pickle, list, PML_IS_LIST, items, count);
    if (!PML_PUSH(&pickle->values.ranges, ((struct pml_range){first, count, kind})))
        return PML_TROUBLE_NO_MEMORY;
    pml_values_become(&pickle->values, list, PML_IS_RANGE, pickle->values.ranges.used - 1);
    pickle->values.useful++;
    return PML_FINE;
}

enum pml_trouble pml_shapes_append(struct pml_pickle *pickle, pml_value list, const pml_value *items, size_t count)
{
    uint64_t payload = 0;
    if (pml_values_tag(list) != PML_OBJECT)
        return PML_TROUBLE_DAMAGED;
    if (!count)
        return PML_FINE;
    switch (pml_values_kind(&pickle->values, list, &payload)) {
    case PML_EMPTY_LIST: return begin_list(pickle, list, items, count);
    case PML_IS_LIST: return keep(pickle, list, PML_IS_LIST, items, count);
    case PML_IS_RANGE: return append_to_range(pickle, list, payload, items, count);
    case PML_IS_STACK: return append_frames(pickle, list, payload, items, count);
    default: return PML_TROUBLE_DAMAGED;
    }
}

enum pml_trouble pml_shapes_tuple(struct pml_pickle *pickle, const pml_value *items, size_t count, pml_value *tuple)
{
    struct pml_pair pair;
    bool failed = false;
    if (count == 2 && pml_values_as_integer(&pickle->values, items[0], &pair.first) &&
        pml_values_as_integer(&pickle->values, items[1], &pair.second)) {
        *tuple = pml_values_pair(&pickle->values, pair, &failed);
        return failed ? PML_TROUBLE_NO_MEMORY : PML_FINE;
    }
    *tuple = pml_values_container(&pickle->values, PML_EMPTY_LIST, &failed);
    if (failed)
        return PML_TROUBLE_NO_MEMORY;
    return count ? keep(pickle, *tuple, PML_IS_LIST, items, count) : PML_FINE;
}
