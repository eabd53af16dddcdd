/* Columns that allocator events do not carry: values of PyTorch's allocator statistics, known only where a segment
 * begins and ends. Needs the GIL throughout.
 *
 * A column is an id given by `pml_stat_columns_add`; ids are never taken back. Accelerators only: device slots 1 and
 * up.
 */
#ifndef PML_STAT_COLUMNS_H
#define PML_STAT_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#define PML_MAX_STAT_COLUMNS 192

enum pml_stat_column_kind {
    PML_STAT_COLUMN_PEAK,  /* highest value within the segment */
    PML_STAT_COLUMN_LEVEL, /* value at the end of the segment */
    PML_STAT_COLUMN_COUNT, /* only grows: the amount added within the segment */
};

/* One window's share: for each device and column the running peak, or the count at the start. */
struct pml_column_values {
    bool active;
    int devices;
    int capacity;
    int64_t *value;
};

/* A new column's id, or -1 when there is no room for more. */
int pml_stat_columns_add(enum pml_stat_column_kind kind);
int pml_stat_columns_count(void);

/* A reading of one device: levels now, and for peak columns the highest value since the reading before. */
void pml_stat_columns_sample(int device, const int64_t *level, const int64_t *peak);
bool pml_stat_columns_known(int device);

/* Begin tracking; false when memory runs out (the values are then inactive). */
bool pml_stat_columns_begin(struct pml_column_values *values, int devices);
void pml_stat_columns_stop(struct pml_column_values *values);
void pml_stat_columns_free(struct pml_column_values *values);
/* Take in the last reading of a device. */
void pml_stat_columns_raise(struct pml_column_values *values, int device);
void pml_stat_columns_absorb(struct pml_column_values *outer, const struct pml_column_values *inner);
/* The column's value for a segment that ends now. */
int64_t pml_stat_columns_value(const struct pml_column_values *values, int device, int column);

#endif
