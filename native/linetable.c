/* Line counters (see linetable.h). Arrays for a device come into being when the device first appears. */
#include "linetable.h"

#include <stdlib.h>
#include <string.h>

struct pml_linetable *pml_linetable_new(int first_line, int last_line, int extras, const int *extra_column)
{
    struct pml_linetable *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    size_t lines = (size_t)(last_line - first_line + 1);
    table->first_line = first_line;
    table->lines = (int)lines;
    table->extras = extras;
    table->extra_column = extra_column;
    table->hits = calloc(lines, sizeof *table->hits);
    table->charged = calloc(lines, sizeof *table->charged);
    table->sampled = calloc(lines, sizeof *table->sampled);
    table->extra_moment = calloc(lines, sizeof *table->extra_moment);
    if (table->hits && table->charged && table->sampled && table->extra_moment)
        return table;
    pml_linetable_free(table);
    return NULL;
}

static void drop_growth(struct pml_linetable *table, int device)
{
    for (int i = 0; table->growth[device] && i < table->lines; i++)
        free(table->growth[device][i]);
    free(table->growth[device]);
    table->growth[device] = NULL;
}

static void drop_slots(struct pml_linetable *table)
{
    for (int device = 0; device < PML_MAX_DEVICES; device++)
        drop_growth(table, device);
    for (int slot = 0; slot <= PML_MAX_DEVICES; slot++) {
        free(table->stats[slot]);
        free(table->extra[slot]);
        table->stats[slot] = NULL;
        table->extra[slot] = NULL;
    }
}

void pml_linetable_free(struct pml_linetable *table)
{
    if (!table)
        return;
    drop_slots(table);
    free(table->hits);
    free(table->charged);
    free(table->sampled);
    free(table->extra_moment);
    free(table);
}

void pml_linetable_clear(struct pml_linetable *table)
{
    drop_slots(table);
    memset(table->hits, 0, (size_t)table->lines * sizeof *table->hits);
    memset(table->charged, 0, (size_t)table->lines * sizeof *table->charged);
    memset(table->sampled, 0, (size_t)table->lines * sizeof *table->sampled);
    memset(table->extra_moment, 0, (size_t)table->lines * sizeof *table->extra_moment);
}

static void raise_all(int64_t *highest, const int64_t *value)
{
    for (int m = 0; m < PML_METRICS; m++)
        if (highest[m] < value[m])
            highest[m] = value[m];
}

static void add_segment(struct pml_line_stats *stats, const struct pml_span *span, const struct pml_levels *end)
{
    int64_t net = end->level[PML_ALLOCATED] - span->start[PML_ALLOCATED];
    raise_all(stats->peak, span->peak);
    raise_all(stats->peak, end->level);
    raise_all(stats->level, end->level);
    if (stats->runs == 0)
        stats->net_first = stats->net_max = net;
    else if (stats->runs == 1 || stats->net_later_max < net)
        stats->net_later_max = net;
    if (stats->net_max < net)
        stats->net_max = net;
    stats->runs++;
    stats->net_sum += net;
    stats->net_last = net;
    stats->gross += end->gross - span->gross;
    stats->count += end->count - span->count;
}

static struct pml_line_stats *stats_at(struct pml_linetable *table, int slot, int index)
{
    if (!table->stats[slot])
        table->stats[slot] = calloc((size_t)table->lines, sizeof **table->stats);
    return table->stats[slot] ? table->stats[slot] + index : NULL;
}

static struct pml_growth *growth_at(struct pml_linetable *table, int device, int index)
{
    if (!table->growth[device])
        table->growth[device] = calloc((size_t)table->lines, sizeof *table->growth[device]);
    if (table->growth[device] && !table->growth[device][index])
        table->growth[device][index] = calloc(1, sizeof(struct pml_growth));
    return table->growth[device] ? table->growth[device][index] : NULL;
}

static bool record_growth(struct pml_linetable *table, int device, int index, const struct pml_window *window,
                          const struct pml_levels *end)
{
    bool first = !table->growth[device] || !table->growth[device][index];
    struct pml_growth *growth = growth_at(table, device, index);
    if (growth)
        pml_growth_add(growth, first, &window->span[device], end, window->epoch);
    return growth != NULL;
}

static bool record_target(struct pml_linetable *table, int index, const struct pml_window *window,
                          const struct pml_levels *ends, int target)
{
    static const struct pml_span no_span;
    static const struct pml_levels no_levels;
    bool there = target < window->devices;
    struct pml_line_stats *stats = stats_at(table, PML_TARGET_SLOT, index);
    table->charged[index] |= UINT64_C(1) << target;
    if (stats)
        add_segment(stats, there ? &window->span[target] : &no_span, there ? &ends[target] : &no_levels);
    return stats != NULL;
}

static bool record_device(struct pml_linetable *table, int device, int index, const struct pml_window *window,
                          const struct pml_levels *end)
{
    struct pml_line_stats *stats = stats_at(table, 1 + device, index);
    if (!stats)
        return false;
    /* runs before the device's first event were runs in which it held nothing; the target slot has seen them all */
    if (stats->runs == 0 && table->stats[PML_TARGET_SLOT])
        stats->runs = table->stats[PML_TARGET_SLOT][index].runs - 1;
    add_segment(stats, &window->span[device], end);
    bool may_grow = stats->runs > 1 && stats->gross > 0;
    return !may_grow || record_growth(table, device, index, window, end);
}

bool pml_linetable_record(struct pml_linetable *table, int line, const struct pml_window *window,
                          const struct pml_levels *ends, int target)
{
    if (!pml_linetable_has(table, line))
        return true;
    int index = line - table->first_line;
    bool kept = record_target(table, index, window, ends, target);
    for (int d = 0; d < window->devices; d++)
        if (pml_meter_used(d))
            kept &= record_device(table, d, index, window, &ends[d]);
    return kept;
}

static size_t extra_size(const struct pml_linetable *table)
{
    return sizeof(struct pml_line_extra) + (size_t)table->extras * sizeof(int64_t);
}

static struct pml_line_extra *extra_at(struct pml_linetable *table, int slot, int index)
{
    if (!table->extra[slot])
        table->extra[slot] = calloc((size_t)table->lines, extra_size(table));
    return table->extra[slot] ? (void *)(table->extra[slot] + (size_t)index * extra_size(table)) : NULL;
}

static bool record_extra_slot(struct pml_linetable *table, int slot, int index, const struct pml_marks *marks,
                              int device)
{
    struct pml_line_extra *extra = extra_at(table, slot, index);
    if (!extra)
        return false;
    for (int i = 0; i < table->extras; i++) {
        int64_t value = pml_marks_value(marks, device, table->extra_column[i]);
        if (!extra->known || extra->value[i] < value)
            extra->value[i] = value;
    }
    extra->known = true;
    return true;
}

bool pml_linetable_record_extra(struct pml_linetable *table, int line, const struct pml_window *window, int target)
{
    if (!pml_linetable_has(table, line) || table->extras == 0)
        return true;
    int index = line - table->first_line;
    uint64_t ticks = pml_meter_ticks();
    uint64_t moment = ticks << 6 | (unsigned)target;
    if (table->extra_moment[index] == moment && window->ticks == ticks)
        return true; /* nothing happened in this segment, nor since this line's last one */
    bool kept = true;
    table->extra_moment[index] = moment;
    if (window->ticks != ticks)
        table->sampled[index]++;
    for (int d = 1; d < window->devices; d++) {
        if (!pml_extra_known(d))
            continue;
        kept &= record_extra_slot(table, 1 + d, index, &window->marks, d);
        if (d == target)
            kept &= record_extra_slot(table, PML_TARGET_SLOT, index, &window->marks, d);
    }
    return kept;
}

const struct pml_growth *pml_linetable_growth(const struct pml_linetable *table, int line, int device)
{
    return table->growth[device] ? table->growth[device][line - table->first_line] : NULL;
}

const struct pml_line_extra *pml_linetable_extra(const struct pml_linetable *table, int line, int slot)
{
    if (!table->extra[slot])
        return NULL;
    const void *at = table->extra[slot] + (size_t)(line - table->first_line) * extra_size(table);
    return ((const struct pml_line_extra *)at)->known ? at : NULL;
}
