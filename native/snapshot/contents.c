/* From a pickle's root to what a memory snapshot is. See contents.h. */
#include "snapshot/contents.h"

#include <stdio.h>
#include <string.h>

bool pml_contents_item(const struct pml_pickle *pickle, pml_value dict, const char *key, pml_value *value)
{
    const pml_items *items = pml_values_items(&pickle->values, dict, PML_IS_DICT);
    for (size_t i = 0; items && i < items->used; i += 2)
        if (pml_values_tag(items->items[i]) == PML_STRING &&
            pml_names_is(&pickle->rows.names, (uint32_t)pml_values_payload(items->items[i]), key)) {
            *value = items->items[i + 1];
            return true;
        }
    return false;
}

/* The range of rows that a list is. An empty list is a range of none. */
static bool rows_of(const struct pml_pickle *pickle, pml_value list, enum pml_kind kind, struct pml_range *range)
{
    uint64_t payload = 0;
    *range = (struct pml_range){.kind = kind};
    if (pml_values_tag(list) != PML_OBJECT)
        return false;
    switch (pml_values_kind(&pickle->values, list, &payload)) {
    case PML_EMPTY_LIST: return true;
    case PML_IS_RANGE: *range = pickle->values.ranges.items[payload]; return range->kind == kind;
    default: return false;
    }
}

static struct pml_trace *trace_of(struct pml_contents *contents, int32_t device)
{
    for (size_t i = 0; i < contents->traces.used; i++)
        if (contents->traces.items[i].device == device)
            return &contents->traces.items[i];
    struct pml_trace trace = {.device = device};
    return PML_PUSH(&contents->traces, trace) ? &contents->traces.items[contents->traces.used - 1] : NULL;
}

static bool add_trace(struct pml_contents *contents, const struct pml_pickle *pickle, pml_value list, int32_t device,
                      bool *failed)
{
    struct pml_range range;
    if (!rows_of(pickle, list, PML_IS_EVENT, &range))
        return false;
    struct pml_trace *trace = range.count ? trace_of(contents, device) : NULL;
    if (range.count && !trace)
        *failed = true;
    if (trace) {
        trace->first = range.first;
        trace->count = range.count;
    }
    return true;
}

/* `device_traces` is a list of lists, one a device. */
static bool add_traces(struct pml_contents *contents, const struct pml_pickle *pickle, pml_value value, bool *failed)
{
    const pml_items *lists = pml_values_items(&pickle->values, value, PML_IS_LIST);
    struct pml_range none;
    if (!lists)
        return rows_of(pickle, value, PML_IS_EVENT, &none) && !none.count;
    for (size_t i = 0; i < lists->used; i++)
        if (i > INT16_MAX || !add_trace(contents, pickle, lists->items[i], (int32_t)i, failed))
            return false;
    return true;
}

/* A list of segments. Blocks without an address follow each other. */
static bool add_segments(struct pml_contents *contents, struct pml_pickle *pickle, pml_value value, bool *failed)
{
    struct pml_range range;
    if (!rows_of(pickle, value, PML_IS_SEGMENT, &range))
        return false;
    for (uint64_t i = range.first; i < range.first + range.count; i++) {
        const struct pml_segment *segment = &pickle->rows.segments.items[i];
        if (!trace_of(contents, segment->device))
            *failed = true;
        uint64_t address = segment->address;
        struct pml_block *blocks = pickle->rows.blocks.items + segment->first_block;
        for (uint32_t b = 0; b < segment->blocks; address += blocks[b++].size)
            if (!blocks[b].address)
                blocks[b].address = address;
    }
    return true;
}

static int64_t setting(const struct pml_pickle *pickle, pml_value settings, const char *key, int64_t otherwise)
{
    pml_value value;
    int64_t number = otherwise;
    if (pml_contents_item(pickle, settings, key, &value))
        pml_values_as_integer(&pickle->values, value, &number);
    return number;
}

static void read_rules(struct pml_rules *rules, const struct pml_pickle *pickle, pml_value settings)
{
    pml_value divisions;
    rules->expandable = setting(pickle, settings, "expandable_segments", 0) != 0;
    int64_t largest = setting(pickle, settings, "max_split_size", -1);
    rules->largest_split = largest > 0 ? (uint64_t)largest : UINT64_MAX;
    if (!pml_contents_item(pickle, settings, "roundup_power2_divisions", &divisions))
        return;
    for (int i = 0; i < 16; i++) {
        char key[8];
        snprintf(key, sizeof key, "%u", 1u << i);
        int64_t count = setting(pickle, divisions, key, 0);
        rules->divisions[i] = count > 1 && count < (1 << 20) ? (uint64_t)count : 0;
    }
}

static bool find_in_dict(struct pml_contents *contents, struct pml_pickle *pickle, bool *failed)
{
    pml_value value, root = pickle->root;
    contents->has_segments = pml_contents_item(pickle, root, "segments", &value);
    if (contents->has_segments && !add_segments(contents, pickle, value, failed))
        return false;
    contents->has_traces = pml_contents_item(pickle, root, "device_traces", &value);
    if (contents->has_traces && !add_traces(contents, pickle, value, failed))
        return false;
    if (pml_contents_item(pickle, root, "host_segments", &value) && !add_segments(contents, pickle, value, failed))
        return false;
    if (pml_contents_item(pickle, root, "host_traces", &value) && !add_trace(contents, pickle, value, PML_HOST, failed))
        return false;
    if (pml_contents_item(pickle, root, "allocator_settings", &value))
        read_rules(&contents->rules, pickle, value);
    return contents->has_segments || contents->has_traces;
}

bool pml_contents_find(struct pml_contents *contents, struct pml_pickle *pickle, bool *failed)
{
    *contents = (struct pml_contents){.rules.largest_split = UINT64_MAX};
    if (pml_values_items(&pickle->values, pickle->root, PML_IS_DICT))
        return find_in_dict(contents, pickle, failed);
    contents->has_segments = add_segments(contents, pickle, pickle->root, failed); /* torch.cuda.memory_snapshot() */
    return contents->has_segments;
}

void pml_contents_drop(struct pml_contents *contents)
{
    PML_DROP(&contents->traces);
}
