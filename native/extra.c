/* Statistics columns (see extra.h): the last reading of each device, and what each open window makes of it. */
#include "extra.h"

#include <stdlib.h>
#include <string.h>

#include "meter.h"

static struct {
    int columns;
    enum pml_extra_kind kind[PML_MAX_EXTRA];
    bool known[PML_MAX_DEVICES];
    int64_t level[PML_MAX_DEVICES][PML_MAX_EXTRA];
    int64_t peak[PML_MAX_DEVICES][PML_MAX_EXTRA];
} extra;

int pml_extra_add(enum pml_extra_kind kind)
{
    if (extra.columns == PML_MAX_EXTRA)
        return -1;
    extra.kind[extra.columns] = kind;
    memset(extra.known, 0, sizeof extra.known);
    return extra.columns++;
}

int pml_extra_count(void)
{
    return extra.columns;
}

void pml_extra_sample(int device, const int64_t *level, const int64_t *peak)
{
    memcpy(extra.level[device], level, (size_t)extra.columns * sizeof *level);
    memcpy(extra.peak[device], peak, (size_t)extra.columns * sizeof *peak);
    extra.known[device] = true;
}

bool pml_extra_known(int device)
{
    return extra.known[device];
}

static int64_t *row(const struct pml_marks *marks, int device)
{
    return marks->mark + (size_t)device * PML_MAX_EXTRA;
}

static bool reserve(struct pml_marks *marks, int devices)
{
    if (devices <= marks->capacity)
        return true;
    int64_t *grown = realloc(marks->mark, (size_t)devices * PML_MAX_EXTRA * sizeof *grown);
    if (!grown)
        return false;
    marks->mark = grown;
    marks->capacity = devices;
    return true;
}

static void begin_device(struct pml_marks *marks, int device)
{
    if (extra.known[device])
        memcpy(row(marks, device), extra.level[device], sizeof extra.level[device]);
    else
        memset(row(marks, device), 0, sizeof extra.level[device]);
}

bool pml_marks_begin(struct pml_marks *marks, int devices)
{
    marks->active = reserve(marks, devices);
    if (!marks->active)
        return false;
    marks->devices = devices;
    for (int d = 0; d < devices; d++)
        begin_device(marks, d);
    return true;
}

void pml_marks_stop(struct pml_marks *marks)
{
    marks->active = false;
}

void pml_marks_free(struct pml_marks *marks)
{
    free(marks->mark);
    *marks = (struct pml_marks){.mark = NULL};
}

/* A device seen for the first time held nothing when the window began. */
static bool cover(struct pml_marks *marks, int device)
{
    if (!reserve(marks, device + 1))
        return false;
    while (marks->devices <= device)
        memset(row(marks, marks->devices++), 0, sizeof extra.level[0]);
    return true;
}

void pml_marks_raise(struct pml_marks *marks, int device)
{
    if (!marks->active || !cover(marks, device))
        return;
    int64_t *mark = row(marks, device);
    for (int c = 0; c < extra.columns; c++)
        if (extra.kind[c] == PML_EXTRA_PEAK && mark[c] < extra.peak[device][c])
            mark[c] = extra.peak[device][c];
}

PML_SELDOM void pml_marks_absorb(struct pml_marks *outer, const struct pml_marks *inner)
{
    if (!outer->active || !inner->active)
        return;
    for (int d = 0; d < inner->devices; d++) {
        if (!cover(outer, d))
            return;
        for (int c = 0; c < extra.columns; c++)
            if (extra.kind[c] == PML_EXTRA_PEAK && row(outer, d)[c] < row(inner, d)[c])
                row(outer, d)[c] = row(inner, d)[c];
    }
}

int64_t pml_marks_value(const struct pml_marks *marks, int device, int column)
{
    int64_t now = extra.level[device][column];
    int64_t mark = device < marks->devices ? row(marks, device)[column] : 0;
    switch (extra.kind[column]) {
    case PML_EXTRA_PEAK:
        return mark;
    case PML_EXTRA_COUNT:
        return now >= mark ? now - mark : now;
    default:
        return now;
    }
}
