/* The line counters of one code object in one profiler: a dense array, so memory depends on lines, not on hits.
 * Needs the GIL.
 */
#ifndef PML_LINE_TABLE_H
#define PML_LINE_TABLE_H

#include "lines/growth.h"
#include "meter/window.h"

#define PML_TARGET_SLOT 0 /* slot 1 + d is device d */

struct pml_line_stats {
    int64_t runs; /* segments */
    int64_t peak[PML_METRICS];
    int64_t level[PML_METRICS]; /* highest value at the end of a segment */
    int64_t net_first;
    int64_t net_sum;
    int64_t net_max;
    int64_t net_last;
    int64_t net_later_max; /* of all runs but the first */
    int64_t gross;
    int64_t count;
    struct pml_growth *growth; /* of lines that ran again after they had taken memory on the device */
};

struct pml_line {
    uint64_t hits;
    int64_t runs;     /* segments */
    uint64_t charged; /* a bit for each device that was the target when a segment ended. Only with several of them the
                       * target slot has figures of its own: one device's are in that device's slot */
    int64_t sampled;  /* segments in which something happened and statistics were read */
    uint64_t stat_ticks; /* the meter's ticks and the target when statistics columns were last recorded */
};

/* Statistics columns of one line and slot; `known`: whether any were read. */
struct pml_line_columns {
    bool known;
    int64_t value[];
};

struct pml_line_table {
    int first_line;
    int lines;
    int stat_columns;
    const int *stat_column_ids; /* borrowed from the recorder */
    struct pml_line *line;
    struct pml_line_stats *stats[1 + PML_MAX_DEVICES];
    char *stat_values[1 + PML_MAX_DEVICES];
};

/* Lines outside [first_line, last_line] are not counted. NULL when memory runs out. */
struct pml_line_table *pml_line_table_new(int first_line, int last_line, int stat_columns, const int *stat_column_ids);
void pml_line_table_free(struct pml_line_table *table);
void pml_line_table_clear(struct pml_line_table *table);

static inline bool pml_line_table_has(const struct pml_line_table *table, int line)
{
    return (unsigned)line - (unsigned)table->first_line < (unsigned)table->lines;
}

static inline void pml_line_table_hit(struct pml_line_table *table, int line)
{
    if (pml_line_table_has(table, line))
        table->line[line - table->first_line].hits++;
}

/* One segment of a line: the window up to its end. `target` is the device that it is charged to. False when memory runs
 * out: the segment is then lost. */
bool pml_line_table_record(struct pml_line_table *table, int line, const struct pml_window *window, int target);

/* The same segment's statistics columns, where they were read. */
bool pml_line_table_record_columns(struct pml_line_table *table, int line, const struct pml_window *window, int target);

/* What was recorded of a line, or NULL; valid until the next call. */
const struct pml_line_stats *pml_line_table_stats(const struct pml_line_table *table, int line, int slot);

const struct pml_line_columns *pml_line_table_columns(const struct pml_line_table *table, int line, int slot);

#endif
