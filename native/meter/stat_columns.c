/* Statistics columns (see stat_columns.h): the last reading of each device, and what each open window makes of it. */
#include "meter/stat_columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static struct {
    int columns;
    enum pml_stat_column_kind kind[PML_MAX_STAT_COLUMNS];
    bool known[PML_MAX_DEVICES];
    int64_t level[PML_MAX_DEVICES][PML_MAX_STAT_COLUMNS];
    int64_t peak[PML_MAX_DEVICES][PML_MAX_STAT_COLUMNS];
} readings;

int pml_stat_columns_add(enum pml_stat_column_kind kind)
{
    if (readings.columns == PML_MAX_STAT_COLUMNS)
        return -1;
    readings.kind[readings.columns] = kind;
    memset(readings.known, 0, sizeof readings.known);
    return readings.columns++;
}

int pml_stat_columns_count(void)
{
    return readings.columns;
}

void pml_stat_columns_sample(int device, const int64_t *level, const int64_t *peak)
{
    memcpy(readings.level[device], level, (size_t)readings.columns * sizeof *level);
    memcpy(readings.peak[device], peak, (size_t)readings.columns * sizeof *peak);
    readings.known[device] = true;
}

bool pml_stat_columns_known(int device)
{
    return readings.known[device];
}

static int64_t *row(const struct pml_column_values *values, int device)
{
    return values->value + (size_t)device * PML_MAX_STAT_COLUMNS;
}

static bool reserve(struct pml_column_values *values, int devices)
{
    if (devices <= values->capacity)
        return true;
    int64_t *grown = realloc(values->value, (size_t)devices * PML_MAX_STAT_COLUMNS * sizeof *grown);
    if (!grown)
        return false;
    values->value = grown;
    values->capacity = devices;
    return true;
}

static void begin_device(struct pml_column_values *values, int device)
{
    if (readings.known[device])
        memcpy(row(values, device), readings.level[device], sizeof readings.level[device]);
    else
        memset(row(values, device), 0, sizeof readings.level[device]);
}

bool pml_stat_columns_begin(struct pml_column_values *values, int devices)
{
    values->active = reserve(values, devices);
    if (!values->active)
        return false;
    values->devices = devices;
    for (int d = 0; d < devices; d++)
        begin_device(values, d);
    return true;
}

void pml_stat_columns_stop(struct pml_column_values *values)
{
    values->active = false;
}

void pml_stat_columns_free(struct pml_column_values *values)
{
    free(values->value);
    *values = (struct pml_column_values){.value = NULL};
}

/* A device seen for the first time held nothing when the window began. */
static bool cover(struct pml_column_values *values, int device)
{
    if (!reserve(values, device + 1))
        return false;
    while (values->devices <= device)
        memset(row(values, values->devices++), 0, sizeof readings.level[0]);
    return true;
}

void pml_stat_columns_raise(struct pml_column_values *values, int device)
{
    if (!values->active || !cover(values, device))
        return;
    int64_t *value = row(values, device);
    for (int c = 0; c < readings.columns; c++)
        if (readings.kind[c] == PML_STAT_COLUMN_PEAK && value[c] < readings.peak[device][c])
            value[c] = readings.peak[device][c];
}

void pml_stat_columns_absorb(struct pml_column_values *outer, const struct pml_column_values *inner)
{
    if (!outer->active || !inner->active)
        return;
    for (int d = 0; d < inner->devices; d++) {
        if (!cover(outer, d))
            return;
        for (int c = 0; c < readings.columns; c++)
            if (readings.kind[c] == PML_STAT_COLUMN_PEAK && row(outer, d)[c] < row(inner, d)[c])
                row(outer, d)[c] = row(inner, d)[c];
    }
}

int64_t pml_stat_columns_value(const struct pml_column_values *values, int device, int column)
{
    int64_t now = readings.level[device][column];
    int64_t value = device < values->devices ? row(values, device)[column] : 0;
    switch (readings.kind[column]) {
    case PML_STAT_COLUMN_PEAK: return value;
    case PML_STAT_COLUMN_COUNT: return now >= value ? now - value : now;
    default: return now;
    }
}
