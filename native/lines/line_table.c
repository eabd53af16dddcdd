/* Line counters (see line_table.h). Arrays for a device come into being when the device first appears. */
#include "lines/line_table.h"

#include <stdlib.h>
#include <string.h>

struct pml_line_table *pml_line_table_new(int first_line, int last_line, int stat_columns, const int *stat_column_ids)
{
    struct pml_line_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    size_t lines = (size_t)(last_line - first_line + 1);
    table->first_line = first_line;
    table->lines = (int)lines;
    table->stat_columns = stat_columns;
    table->stat_column_ids = stat_column_ids;
    table->line = calloc(lines, sizeof *table->line);
    if (table->line)
        return table;
    free(table);
    return NULL;
}

static void drop_slots(struct pml_line_table *table)
{
    for (int slot = 0; slot <= PML_MAX_DEVICES; slot++) {
        for (int i = 0; table->stats[slot] && i < table->lines; i++)
            free(table->stats[slot][i].growth);
        free(table->stats[slot]);
        free(table->stat_values[slot]);
        table->stats[slot] = NULL;
        table->stat_values[slot] = NULL;
    }
}

void pml_line_table_free(struct pml_line_table *table)
{
    if (!table)
        return;
    drop_slots(table);
    free(table->line);
    free(table);
}

void pml_line_table_clear(struct pml_line_table *table)
{
    drop_slots(table);
    memset(table->line, 0, (size_t)table->lines * sizeof *table->line);
}

static void raise(int64_t *highest, int64_t value)
{
    if (*highest < value)
        *highest = value;
}

static void raise_levels(struct pml_line_stats *stats, const int64_t *peak, const int64_t *level)
{
    for (int m = 0; m < PML_METRICS; m++) {
        raise(&stats->peak[m], peak[m] > level[m] ? peak[m] : level[m]);
        raise(&stats->level[m], level[m]);
    }
}

/* A further run in which nothing happened, at levels as low as at other ends: most runs are like that. */
static inline bool is_like_others(const struct pml_line_stats *stats, int64_t runs, const struct pml_span *span)
{
    const int64_t *level = span->start.level;
    return span->end_ticks == span->ticks && runs > 1 && level[PML_ACTIVE] <= stats->level[PML_ACTIVE] &&
           level[PML_ALLOCATED] <= stats->level[PML_ALLOCATED] && level[PML_RESERVED] <= stats->level[PML_RESERVED];
}

static inline void add_like_others(struct pml_line_stats *stats, int64_t runs)
{
    raise(&stats->net_later_max, 0);
    raise(&stats->net_max, 0);
    stats->runs = runs + 1;
    stats->net_last = 0;
}

/* `runs`: before this one. */
static inline void add_segment(struct pml_line_stats *stats, int64_t runs, const struct pml_span *span)
{
    if (is_like_others(stats, runs, span)) {
        add_like_others(stats, runs);
        return;
    }
    const struct pml_levels *end = pml_window_span_end(span);
    int64_t net = end->level[PML_ALLOCATED] - span->start.level[PML_ALLOCATED];
    raise_levels(stats, span->peak, end->level);
    if (runs == 0)
        stats->net_first = stats->net_max = net;
    else if (runs == 1 || stats->net_later_max < net)
        stats->net_later_max = net;
    raise(&stats->net_max, net);
    stats->runs = runs + 1; /* in those before the device's first event it held nothing */
    stats->net_sum += net;
    stats->net_last = net;
    stats->gross += end->gross - span->start.gross;
    stats->count += end->count - span->start.count;
}

static bool make_slot(struct pml_line_table *table, int slot)
{
    table->stats[slot] = calloc((size_t)table->lines, sizeof **table->stats);
    return table->stats[slot];
}

static struct pml_line_stats *stats_at(struct pml_line_table *table, int slot, int index)
{
    bool there = table->stats[slot] || make_slot(table, slot);
    return there ? table->stats[slot] + index : NULL;
}

static bool record_growth(struct pml_line_stats *stats, const struct pml_span *span, const struct pml_window *window)
{
    if (!stats->growth)
        stats->growth = calloc(1, sizeof *stats->growth);
    if (stats->growth)
        pml_growth_add(stats->growth, span->held, span->old, window->call, window->pass);
    return stats->growth != NULL;
}

static bool record_device(struct pml_line_table *table, int device, int index, const struct pml_window *window)
{
    struct pml_line_stats *stats = stats_at(table, 1 + device, index);
    int64_t runs = table->line[index].runs;
    if (!stats)
        return false;
    const struct pml_span *span = &window->span[device];
    add_segment(stats, runs, span);
    return span->held < 0 || record_growth(stats, span, window);
}

static bool is_one_device(uint64_t charged)
{
    return charged && !(charged & (charged - 1));
}

/* The figures of a line that was charged to one device until now become those of its target slot. */
static void set_apart(struct pml_line_table *table, int index, struct pml_line_stats *stats, int device)
{
    const struct pml_line_stats *until_now = table->stats[1 + device];
    if (until_now)
        *stats = until_now[index];
    stats->growth = NULL;
}

/* `charged`: before this segment. */
static bool record_target(struct pml_line_table *table, int index, const struct pml_window *window, int target,
                          uint64_t charged)
{
    static const struct pml_span no_span;
    struct pml_line_stats *stats = stats_at(table, PML_TARGET_SLOT, index);
    if (!stats)
        return false;
    if (is_one_device(charged))
        set_apart(table, index, stats, __builtin_ctzll(charged));
    add_segment(stats, table->line[index].runs, target < window->devices ? &window->span[target] : &no_span);
    return true;
}

bool pml_line_table_record(struct pml_line_table *table, int line, const struct pml_window *window, int target)
{
    if (!pml_line_table_has(table, line))
        return true;
    int index = line - table->first_line;
    struct pml_line *at = &table->line[index];
    uint64_t charged = at->charged, bit = UINT64_C(1) << target;
    bool kept = true;
    at->charged = charged | bit;
    if (at->charged != bit)
        kept = record_target(table, index, window, target, charged);
    for (int d = 0; d < window->devices; d++)
        if (pml_meter_used(d))
            kept &= record_device(table, d, index, window);
    at->runs++;
    return kept;
}

const struct pml_line_stats *pml_line_table_stats(const struct pml_line_table *table, int line, int slot)
{
    static struct pml_line_stats held_nothing;
    int index = line - table->first_line;
    const struct pml_line *at = &table->line[index];
    bool shared = slot == PML_TARGET_SLOT && is_one_device(at->charged);
    const struct pml_line_stats *stats = table->stats[shared ? 1 + __builtin_ctzll(at->charged) : slot];
    if (stats && stats[index].runs)
        return &stats[index];
    held_nothing.runs = at->runs; /* on a target that is not there */
    return shared ? &held_nothing : NULL;
}

static size_t stat_values_size(const struct pml_line_table *table)
{
    return sizeof(struct pml_line_columns) + (size_t)table->stat_columns * sizeof(int64_t);
}

static struct pml_line_columns *stat_values_at(struct pml_line_table *table, int slot, int index)
{
    if (!table->stat_values[slot])
        table->stat_values[slot] = calloc((size_t)table->lines, stat_values_size(table));
    return table->stat_values[slot] ? (void *)(table->stat_values[slot] + (size_t)index * stat_values_size(table))
                                    : NULL;
}

static bool record_columns_slot(struct pml_line_table *table, int slot, int index,
                                const struct pml_column_values *columns, int device)
{
    struct pml_line_columns *stat_values = stat_values_at(table, slot, index);
    if (!stat_values)
        return false;
    for (int i = 0; i < table->stat_columns; i++) {
        int64_t value = pml_stat_columns_value(columns, device, table->stat_column_ids[i]);
        if (!stat_values->known || stat_values->value[i] < value)
            stat_values->value[i] = value;
    }
    stat_values->known = true;
    return true;
}

bool pml_line_table_record_columns(struct pml_line_table *table, int line, const struct pml_window *window, int target)
{
    if (!pml_line_table_has(table, line) || table->stat_columns == 0)
        return true;
    int index = line - table->first_line;
    uint64_t ticks = pml_meter_ticks();
    uint64_t now = ticks << 6 | (unsigned)target;
    if (table->line[index].stat_ticks == now && window->ticks == ticks)
        return true; /* nothing happened in this segment, nor since this line's last one */
    bool kept = true;
    table->line[index].stat_ticks = now;
    if (window->ticks != ticks)
        table->line[index].sampled++;
    for (int d = 1; d < window->devices; d++) {
        if (!pml_stat_columns_known(d))
            continue;
        kept &= record_columns_slot(table, 1 + d, index, &window->columns, d);
        if (d == target)
            kept &= record_columns_slot(table, PML_TARGET_SLOT, index, &window->columns, d);
    }
    return kept;
}

const struct pml_line_columns *pml_line_table_columns(const struct pml_line_table *table, int line, int slot)
{
    if (!table->stat_values[slot])
        return NULL;
    const void *at = table->stat_values[slot] + (size_t)(line - table->first_line) * stat_values_size(table);
    return ((const struct pml_line_columns *)at)->known ? at : NULL;
}
