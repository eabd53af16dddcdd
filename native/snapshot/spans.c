/* Memory taken from the device at a moment: that at the end, with what came after the moment undone. See spans.h. */
#include "snapshot/spans.h"

#include <string.h>

/* The first span that ends above an address. */
static size_t first_above(const pml_memory_spans *spans, uint64_t address)
{
    size_t low = 0, high = spans->used;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->items[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool pml_spans_add(pml_memory_spans *spans, struct pml_memory_span span)
{
    if (span.end <= span.start)
        return true;
    size_t i = first_above(spans, span.start);
    struct pml_memory_span *before = i ? &spans->items[i - 1] : NULL;
    if (span.expandable && before && before->expandable && before->end == span.start) {
        before->end = span.end;
        return true;
    }
    if (!PML_RESERVE(spans, 1))
        return false;
    memmove(spans->items + i + 1, spans->items + i, (spans->used - i) * sizeof *spans->items);
    spans->items[i] = span;
    spans->used++;
    return true;
}

/* Take the part between two addresses out. */
static bool cut(pml_memory_spans *spans, uint64_t start, uint64_t end)
{
    size_t i = first_above(spans, start);
    while (i < spans->used && spans->items[i].start < end) {
        struct pml_memory_span *span = &spans->items[i];
        struct pml_memory_span right = *span;
        right.start = end;
        if (span->start < start) {
            span->end = start;
            i++;
            if (right.start < right.end)
                return pml_spans_add(spans, right);
        } else if (span->end > end) {
            span->start = end;
            return true;
        } else {
            memmove(span, span + 1, (--spans->used - i) * sizeof *span);
        }
    }
    return true;
}

bool pml_spans_at(const struct pml_replay *replay, uint32_t moment, pml_memory_spans *spans)
{
    spans->used = 0;
    bool fine = PML_RESERVE(spans, replay->spans.used);
    if (fine && replay->spans.used)
        memcpy(spans->items, replay->spans.items, replay->spans.used * sizeof *spans->items);
    spans->used = fine ? replay->spans.used : 0;
    for (uint32_t i = replay->count; fine && i > moment; i--) {
        const struct pml_event *event = &replay->events[i - 1];
        enum pml_action action = pml_rows_action_of(event);
        uint64_t end = event->address + event->size;
        struct pml_memory_span span = {event->address, end, pml_rows_setting_of(event), action == PML_SEGMENT_UNMAP};
        if (action == PML_SEGMENT_ALLOC || action == PML_SEGMENT_MAP)
            fine = cut(spans, event->address, end);
        else if (action == PML_SEGMENT_FREE || action == PML_SEGMENT_UNMAP)
            fine = pml_spans_add(spans, span);
    }
    return fine;
}
