/* Windows (see window.h): the list of open ones, and what each has seen. */
#include "meter/window.h"

#include "base/numbers.h"

struct pml_window pml_window_list = {.next = &pml_window_list, .prev = &pml_window_list};

/* Devices that appeared after the window began held nothing then. */
static void cover_more(struct pml_window *window, int devices)
{
    while (window->devices < devices)
        window->span[window->devices++] = (struct pml_span){.held = -1};
}

static inline void cover_devices(struct pml_window *window, int devices)
{
    if (window->devices < devices)
        cover_more(window, devices);
}

static inline void raise_window(struct pml_window *window, int device, const int64_t top[PML_METRICS])
{
    cover_devices(window, device + 1);
    int64_t *peak = window->span[device].peak;
    for (int m = 0; m < PML_METRICS; m++)
        peak[m] = pml_numbers_max(peak[m], top[m]);
}

void pml_window_fold_device(int device)
{
    int64_t top[PML_METRICS];
    if (!pml_meter_take_tops(device, top))
        return;
    for (struct pml_window *w = pml_window_list.next; w != &pml_window_list; w = w->next)
        raise_window(w, device, top);
}

void pml_window_fold_columns(int device)
{
    for (struct pml_window *w = pml_window_list.next; w != &pml_window_list; w = w->next)
        pml_stat_columns_raise(&w->columns, device);
}

void pml_window_link(struct pml_window *window)
{
    struct pml_window *head = &pml_window_list;
    window->next = head->next;
    window->prev = head;
    head->next->prev = window;
    head->next = window;
}

void pml_window_unlink(struct pml_window *window)
{
    window->prev->next = window->next;
    window->next->prev = window->prev;
    window->next = window->prev = window;
}

static void start_at(struct pml_span *span, const struct pml_levels *levels)
{
    for (int m = 0; m < PML_METRICS; m++)
        span->start.level[m] = span->peak[m] = levels->level[m];
    span->start.gross = levels->gross;
    span->start.count = levels->count;
    span->ticks = span->end_ticks;
}

void pml_window_restart(struct pml_window *window)
{
    uint64_t ticks = pml_meter_invalidations();
    window->devices = pml_meter_devices();
    for (int d = 0; d < window->devices; d++) {
        struct pml_span *span = &window->span[d];
        ticks += span->end_ticks = pml_meter_ticks_of(d);
        pml_meter_read(d, &span->end);
        start_at(span, &span->end);
    }
    window->ticks = window->end_ticks = ticks;
}

void pml_window_read_end(struct pml_window *window)
{
    uint64_t ticks = pml_meter_invalidations();
    cover_devices(window, pml_meter_devices());
    for (int d = 0; d < window->devices; d++) {
        struct pml_span *span = &window->span[d];
        uint64_t now = pml_meter_ticks_of(d);
        ticks += now;
        if (now != span->ticks) {
            span->end_ticks = now;
            pml_meter_read(d, &span->end);
        }
    }
    window->end_ticks = ticks;
}

void pml_window_go_on(struct pml_window *window)
{
    window->ticks = window->end_ticks;
    for (int d = 0; d < window->devices; d++)
        if (window->span[d].ticks != window->span[d].end_ticks)
            start_at(&window->span[d], &window->span[d].end);
}

void pml_window_absorb(struct pml_window *outer, const struct pml_window *inner)
{
    cover_devices(outer, inner->devices);
    for (int d = 0; d < inner->devices; d++)
        for (int m = 0; m < PML_METRICS; m++)
            if (outer->span[d].peak[m] < inner->span[d].peak[m])
                outer->span[d].peak[m] = inner->span[d].peak[m];
    if (outer->columns.active && inner->columns.active)
        pml_stat_columns_absorb(&outer->columns, &inner->columns);
}

void pml_window_forget_all(void)
{
    while (pml_window_list.next != &pml_window_list)
        pml_window_unlink(pml_window_list.next);
}
