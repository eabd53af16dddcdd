/* Allocator events on ELF systems (see allocator_events.h).
 *
 * Threads: each function here runs on whatever thread allocates or frees, with or without the GIL; those for
 * accelerators with the device allocator's lock held. They use atomics, thread-local data and leaf locks only.
 * Order: a free is counted before the memory is given back, as another thread may get it at once.
 */
#include "events/allocator_events.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "elf/elf_got.h"
#include "base/torch_abi.h"
#include "holders/failures.h"
#include "holders/ledger.h"
#include "meter/cpu_blocks.h"
#include "meter/meter.h"
#include "meter/stream_pending.h"
#include "saved/saved_tables.h"

typedef int memory_info_function(size_t *, size_t *);
typedef int memalign_function(void **, size_t, size_t);
typedef void free_function(void *);
typedef int event_stream_function(void *, void *);
typedef int event_stream_flags_function(void *, void *, unsigned);
typedef int one_pointer_function(void *);
typedef int no_argument_function(void);

static pml_torch_report *original_report;
static pml_torch_report_out_of_memory *original_report_failure;
static memory_info_function *original_memory_info;
static memalign_function *original_memalign;
static free_function *original_free;
static event_stream_function *original_record;
static event_stream_flags_function *original_record_flags;
static one_pointer_function *original_query;
static one_pointer_function *original_synchronize;
static one_pointer_function *original_device_free;
static one_pointer_function *original_stream_synchronize;
static no_argument_function *original_device_synchronize;

static _Atomic bool released;
static _Atomic bool following = true;

/* The meter's slot of a device, or -1 for one that it does not count. */
static int slot_of(struct pml_torch_device device)
{
    int slot = 1 + device.index;
    return device.type == PML_TORCH_DEVICE_CUDA && device.index >= 0 && slot < PML_MAX_DEVICES ? slot : -1;
}

static bool saved_is_followed(void)
{
    return atomic_load_explicit(&pml_saved_tables_following, memory_order_relaxed);
}

static void saved_event(int slot, const void *pointer, int64_t size)
{
    if (size > 0)
        pml_saved_tables_allocated(slot, pointer, size);
    else
        pml_saved_tables_freed(pointer);
}

static void on_report(void *pointer, int64_t size, size_t allocated, size_t reserved, struct pml_torch_device device)
{
    int slot = slot_of(device);
    if (slot > 0 && atomic_load_explicit(&following, memory_order_relaxed))
        pml_ledger_reported(slot, pointer, size, (int64_t)allocated, (int64_t)reserved);
    if (slot > 0 && saved_is_followed())
        saved_event(slot, pointer, size);
    original_report(pointer, size, allocated, reserved, device);
}

/* The allocation failed, after all that the allocator can do about it. */
static void on_report_failure(int64_t size, size_t allocated, size_t reserved, struct pml_torch_device device)
{
    int slot = slot_of(device);
    if (slot > 0 && atomic_load_explicit(&following, memory_order_relaxed))
        pml_failures_note(slot, size, (int64_t)allocated, (int64_t)reserved);
    original_report_failure(size, allocated, reserved, device);
}

/* The allocator asks how much there is just before it reports a failure. */
static int on_memory_info(size_t *unused, size_t *total)
{
    int error = original_memory_info(unused, total);
    if (error == 0)
        pml_failures_note_capacity((int64_t)*unused, (int64_t)*total);
    return error;
}

static void count_memalign(const void *pointer, size_t size)
{
    size_t before;
    if (!pml_cpu_blocks_put(pointer, size, &before))
        return;
    if (before) /* a seeded block that went elsewhere than through `free` here */
        pml_meter_move(PML_CPU, -(int64_t)before);
    if (pml_ledger_idle()) {
        pml_meter_move(PML_CPU, (int64_t)size);
        return;
    }
    pml_ledger_lock(PML_CPU);
    int64_t value = pml_meter_move(PML_CPU, (int64_t)size);
    pml_ledger_allocated(PML_CPU, pointer, (int64_t)size, value);
    pml_ledger_unlock(PML_CPU);
}

static int on_memalign(void **pointer, size_t alignment, size_t size)
{
    int error = original_memalign(pointer, alignment, size);
    if (error == 0 && size != 0)
        count_memalign(*pointer, size);
    else if (error == ENOMEM)
        pml_failures_note(PML_CPU, (int64_t)size, -1, -1);
    if (error == 0 && size != 0 && saved_is_followed())
        saved_event(PML_CPU, *pointer, (int64_t)size);
    return error;
}

static void count_free(const void *pointer, size_t size)
{
    if (pml_ledger_idle()) {
        pml_meter_move(PML_CPU, -(int64_t)size);
        return;
    }
    pml_ledger_lock(PML_CPU);
    int64_t value = pml_meter_move(PML_CPU, -(int64_t)size);
    pml_ledger_freed(PML_CPU, pointer, value);
    pml_ledger_unlock(PML_CPU);
}

static void on_free(void *pointer)
{
    size_t size = pointer ? pml_cpu_blocks_take(pointer) : 0;
    if (size)
        count_free(pointer, size);
    if (pointer && saved_is_followed())
        saved_event(PML_CPU, pointer, 0);
    original_free(pointer);
}

static int on_record(void *event, void *stream)
{
    int error = original_record(event, stream);
    if (error == 0)
        pml_stream_pending_recorded(event);
    return error;
}

static int on_record_flags(void *event, void *stream, unsigned flags)
{
    int error = original_record_flags(event, stream, flags);
    if (error == 0)
        pml_stream_pending_recorded(event);
    return error;
}

static int on_query(void *event)
{
    int error = original_query(event);
    if (error == 0)
        pml_ledger_event_done(event);
    return error;
}

static int on_synchronize(void *event)
{
    int error = original_synchronize(event);
    if (error == 0)
        pml_ledger_event_done(event);
    return error;
}

static void note_release(void)
{
    atomic_store_explicit(&released, true, memory_order_relaxed);
    pml_meter_invalidate();
}

static int on_device_free(void *pointer)
{
    int error = original_device_free(pointer);
    note_release();
    return error;
}

/* Expandable segments are unmapped through functions that no GOT shows; the allocator waits for the stream or the
 * device first. */
static int on_stream_synchronize(void *stream)
{
    note_release();
    return original_stream_synchronize(stream);
}

static int on_device_synchronize(void)
{
    note_release();
    return original_device_synchronize();
}

bool pml_allocator_events_take_released(void)
{
    if (!atomic_load_explicit(&released, memory_order_relaxed))
        return false;
    return atomic_exchange(&released, false);
}

void pml_allocator_events_follow_accelerators(bool follow)
{
    atomic_store(&following, follow);
    pml_ledger_follow_accelerators(follow);
}

bool pml_allocator_events_seed_cpu(const void *pointer, long long size)
{
    bool entered = pointer && size > 0 && pml_cpu_blocks_seed(pointer, (size_t)size);
    if (entered)
        pml_meter_move(PML_CPU, size);
    return entered;
}

static bool patch(const char *library, const char *symbol, void *replacement, void *original)
{
    return pml_elf_got_patch(library, symbol, replacement, original) > 0;
}

static int install_cpu(void)
{
    /* `free` first: it only counts what was entered. */
    if (patch(PML_TORCH_C10, PML_LIBC_FREE, on_free, &original_free) &&
        patch(PML_TORCH_C10, PML_LIBC_MEMALIGN, on_memalign, &original_memalign))
        return PML_EVENTS_CPU;
    return 0;
}

static int install_accelerator(void)
{
    const char *library = PML_TORCH_C10_CUDA;
    bool there = patch(library, PML_TORCH_REPORT, on_report, &original_report);
    patch(library, PML_TORCH_REPORT_OUT_OF_MEMORY, on_report_failure, &original_report_failure);
    patch(library, PML_CUDA_MEMORY_INFO, on_memory_info, &original_memory_info);
    return there ? PML_EVENTS_ACCELERATOR : 0;
}

static int install_streams(void)
{
    const char *library = PML_TORCH_C10_CUDA;
    bool done = patch(library, PML_CUDA_EVENT_QUERY, on_query, &original_query);
    done &= patch(library, PML_CUDA_EVENT_SYNCHRONIZE, on_synchronize, &original_synchronize);
    bool recorded = patch(library, PML_CUDA_EVENT_RECORD, on_record, &original_record);
    recorded |= patch(library, PML_CUDA_EVENT_RECORD_WITH_FLAGS, on_record_flags, &original_record_flags);
    patch(library, PML_CUDA_FREE, on_device_free, &original_device_free);
    patch(library, PML_CUDA_STREAM_SYNCHRONIZE, on_stream_synchronize, &original_stream_synchronize);
    patch(library, PML_CUDA_DEVICE_SYNCHRONIZE, on_device_synchronize, &original_device_synchronize);
    return done && recorded ? PML_EVENTS_STREAMS : 0;
}

int pml_allocator_events_install(void)
{
    return install_cpu() | install_accelerator() | install_streams();
}

static bool leads_elsewhere(const char *library, const char *symbol, const void *replacement, bool was_here)
{
    return was_here && !pml_elf_got_holds(library, symbol, replacement);
}

bool pml_allocator_events_displaced(void)
{
    return leads_elsewhere(PML_TORCH_C10, PML_LIBC_FREE, on_free, original_free) ||
           leads_elsewhere(PML_TORCH_C10, PML_LIBC_MEMALIGN, on_memalign, original_memalign) ||
           leads_elsewhere(PML_TORCH_C10_CUDA, PML_TORCH_REPORT, on_report, original_report);
}

void pml_allocator_events_forget_blocks(void)
{
    pml_cpu_blocks_clear();
    pml_ledger_adjust(PML_CPU, PML_ALLOCATED, 0);
    pml_ledger_forget_blocks();
    pml_meter_invalidate();
}
