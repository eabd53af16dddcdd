/* Segments (see segment.h). */
#include "frames/segment.h"

#include "base/moment.h"
#include "holders/charge.h"
#include "holders/ledger.h"
#include "holders/picture_recording.h"
#include "holders/thread_line.h"

int pml_segment_target_device = 1; /* cuda:0 */

bool pml_segment_wants_sample(const struct pml_code *code, int line)
{
    for (int i = 0; i < code->subscribers; i++) {
        const struct pml_subscriber *sub = code->subscriber[i];
        if (sub->recorder->recording && sub->recorder->stat_columns && pml_line_table_has(sub->table, line) &&
            sub->table->line[line - sub->table->first_line].sampled < sub->recorder->sample_runs)
            return true;
    }
    return false;
}

static void lose_sample(const struct pml_code *code)
{
    for (int i = 0; i < code->subscribers; i++)
        if (code->subscriber[i]->recorder->stat_columns)
            code->subscriber[i]->recorder->failed = true;
}

/* The window's statistics columns restart. What they had belongs to the frame around as well: the reading that was
 * made for this segment's beginning reached this window alone. */
static bool begin_columns(struct pml_window *window, struct pml_frame *outer)
{
    if (outer)
        pml_stat_columns_absorb(&outer->window.columns, &window->columns);
    return pml_stat_columns_begin(&window->columns, pml_meter_devices());
}

static bool counts(const struct pml_recorder *recorder, const struct pml_frame *frame)
{
    return recorder->recording && recorder->started < frame->segment;
}

static uint64_t groups_of(const struct pml_frame *frame)
{
    uint64_t groups = 0;
    for (int i = 0; i < frame->code->subscribers; i++) {
        const struct pml_recorder *recorder = frame->code->subscriber[i]->recorder;
        if (counts(recorder, frame))
            groups |= recorder->group;
    }
    return groups;
}

void pml_segment_recount(struct pml_frame *frame)
{
    uint64_t before = frame->groups;
    frame->groups = groups_of(frame);
    pml_picture_recording_close(before & ~frame->groups);
    pml_picture_recording_open(frame->groups & ~before);
}

/* The thread runs this line from now on: what it allocates is the line's. */
static void own_line(struct pml_frame *frame, const struct pml_frame *outer)
{
    bool changed = frame->version != pml_codes_version;
    uint64_t groups = atomic_load_explicit(&frame->code->groups, memory_order_relaxed);
    if (changed) {
        frame->version = pml_codes_version;
        frame->around = pml_charge_outside(outer ? outer->owner : NULL, groups);
    }
    frame->owner = groups ? pml_charge_at(frame->code, frame->line, frame->around) : frame->around;
    pml_thread_line_set(frame->thread_line, frame->owner);
    if (changed)
        pml_segment_recount(frame);
    if (pml_charge_failed || !frame->thread_line) {
        pml_charge_failed = false;
        pml_active_pictures_fail(frame->groups);
    }
}

/* What the line holds itself as it begins; only where pictures are taken is it known (ledger.h). */
static void read_held(struct pml_frame *frame)
{
    struct pml_owner *owner = frame->groups ? pml_owners_of_line(frame->code, frame->line) : NULL;
    for (int d = 0; d < frame->window.devices; d++) {
        struct pml_span *span = &frame->window.span[d];
        span->held = -1;
        if (owner && pml_meter_used(d))
            pml_ledger_begin_line(d, owner, frame->code->since, &span->held, &span->old);
    }
}

/* The window has begun; `changed`: from other levels than before. */
static void begin(struct pml_frame *frame, int line, bool sampled, struct pml_frame *outer, bool changed)
{
    struct pml_window *window = &frame->window;
    bool tracked = sampled || (outer && outer->window.columns.active);
    bool unread = sampled && !frame->sampled; /* they began without a reading */
    frame->line = line;
    frame->segment = pml_moment_next();
    if (!tracked)
        pml_stat_columns_stop(&window->columns);
    else if (changed || unread || !window->columns.active)
        tracked = begin_columns(window, outer);
    frame->sampled = sampled && tracked;
    if (sampled && !tracked)
        lose_sample(frame->code);
    own_line(frame, outer);
    read_held(frame);
}

void pml_segment_open(struct pml_frame *frame, int line, bool sampled, struct pml_frame *outer)
{
    pml_window_restart(&frame->window);
    begin(frame, line, sampled, outer, true);
}

static void record_for(const struct pml_frame *frame, struct pml_subscriber *sub)
{
    struct pml_recorder *recorder = sub->recorder;
    bool kept = pml_line_table_record(sub->table, frame->line, &frame->window, pml_segment_target_device);
    if (frame->sampled && recorder->stat_columns)
        kept &= pml_line_table_record_columns(sub->table, frame->line, &frame->window, pml_segment_target_device);
    if (!kept)
        recorder->failed = true;
}

/* For all profilers, or for one (`only`). */
static void record(struct pml_frame *frame, const struct pml_recorder *only)
{
    pml_window_read_end(&frame->window);
    for (int i = 0; i < frame->code->subscribers; i++) {
        struct pml_subscriber *sub = frame->code->subscriber[i];
        if (counts(sub->recorder, frame) && (!only || sub->recorder == only))
            record_for(frame, sub);
    }
}

void pml_segment_next(struct pml_frame *frame, int line, bool sampled, struct pml_frame *outer)
{
    struct pml_window *window = &frame->window;
    record(frame, NULL);
    bool changed = window->ticks != window->end_ticks;
    if (changed && outer)
        pml_window_absorb(&outer->window, window);
    if (changed)
        pml_window_go_on(window);
    begin(frame, line, sampled, outer, changed);
    pml_segment_hit(frame);
}

void pml_segment_close(struct pml_frame *frame)
{
    record(frame, NULL);
}

void pml_segment_hit(const struct pml_frame *frame)
{
    for (int i = 0; i < frame->code->subscribers; i++)
        if (counts(frame->code->subscriber[i]->recorder, frame))
            pml_line_table_hit(frame->code->subscriber[i]->table, frame->line);
}

void pml_segment_flush(struct pml_frame_stack *stack, const struct pml_recorder *recorder)
{
    for (int i = stack->depth - 1; i >= 0; i--) {
        record(stack->frame[i], recorder);
        if (i > 0)
            pml_window_absorb(&stack->frame[i - 1]->window, &stack->frame[i]->window);
    }
}
