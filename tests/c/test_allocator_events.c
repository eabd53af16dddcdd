/* Allocator events, whole: fake libraries named as PyTorch's, patched by `pml_allocator_events_install`, seen in the
 * meter. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "meter/cpu_blocks.h"
#include "check.h"
#include "elf/elf_got.h"
#include "events/allocator_events.h"
#include "fresh.h"
#include "holders/ledger.h"
#include "meter/stream_pending.h"
#include "runtime.h"

enum { CPU_TYPE = 0, CUDA_TYPE = 1, XPU_TYPE = 12 };

static struct {
    void *(*allocate)(size_t);
    void (*free)(void *);
    void (*report)(void *, int64_t, size_t, size_t, int, int);
    int (*record)(void *, void *);
    int (*record_flags)(void *, void *, unsigned);
    int (*query)(void *);
    int (*synchronize)(void *);
    int (*device_free)(void *);
    int (*stream_synchronize)(void *);
    int (*device_synchronize)(void);
    void *(*host_allocate)(size_t);
    void (*host_free)(void *);
} c10;

static char event[4], stream[1];

static void *load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", FAKE_DIR, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return handle;
}

#define BIND(handle, member, name) (*(void **)&c10.member = dlsym(handle, name))

static void load_c10(void)
{
    void *handle = load("libc10.so.fake");
    BIND(handle, allocate, "c10_allocate");
    BIND(handle, free, "c10_free");
}

static void load_c10_cuda(void)
{
    void *handle = load("libc10_cuda.so.fake");
    BIND(handle, report, "c10_cuda_report");
    BIND(handle, record, "c10_cuda_record");
    BIND(handle, record_flags, "c10_cuda_record_flags");
    BIND(handle, query, "c10_cuda_query");
    BIND(handle, synchronize, "c10_cuda_synchronize");
    BIND(handle, device_free, "c10_cuda_free");
    BIND(handle, stream_synchronize, "c10_cuda_stream_synchronize");
    BIND(handle, device_synchronize, "c10_cuda_device_synchronize");
    BIND(handle, host_allocate, "c10_cuda_host_allocate");
    BIND(handle, host_free, "c10_cuda_host_free");
}

static struct pml_levels levels(int device)
{
    struct pml_levels now;
    pml_meter_read(device, &now);
    return now;
}

static uint64_t ticks(void)
{
    return pml_meter_ticks();
}

static void fresh(void)
{
    fresh_meter();
    pml_cpu_blocks_clear();
    pml_allocator_events_take_released();
    pml_allocator_events_follow_accelerators(true);
    pml_stream_pending_allocated();
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        pml_stream_pending_correct(d, -1, NULL);
        pml_stream_pending_correct(d, 0, NULL);
    }
    fake_calls = (struct fake_calls){.report = 0};
    fake_result = 0;
}

/* ---- what the library called before: the C library, by way of functions that the tests can steer ---- */

static int (*memalign_of_libc)(void **, size_t, size_t);
static void (*free_of_libc)(void *);

static _Thread_local struct {
    void *next; /* the next allocation's address, if not NULL */
    void *freed;
    int64_t level_at_free;
} below;

static int memalign_below(void **pointer, size_t alignment, size_t size)
{
    if (!below.next)
        return memalign_of_libc(pointer, alignment, size);
    *pointer = below.next;
    below.next = NULL;
    return 0;
}

static void free_below(void *pointer)
{
    below.freed = pointer;
    below.level_at_free = levels(PML_CPU).level[PML_ALLOCATED];
    free_of_libc(pointer);
}

/* ---- installing, library by library ---- */

static void without_libraries_nothing_is_followed(void)
{
    CHECK_INT(pml_allocator_events_install(), 0);
}

static void the_cpu_is_followed_once_libc10_is_there(void)
{
    load_c10();
    CHECK_INT(pml_elf_got_patch("libc10.so", "posix_memalign", memalign_below, (void **)&memalign_of_libc), 1);
    CHECK_INT(pml_elf_got_patch("libc10.so", "free", free_below, (void **)&free_of_libc), 1);
    CHECK_INT(pml_allocator_events_install(), PML_EVENTS_CPU);
}

static void a_library_without_events_is_followed_by_its_reports(void)
{
    void *handle = load("libc10_cuda.so.plain");
    void (*plain_report)(int64_t, size_t, size_t, int);
    *(void **)&plain_report = dlsym(handle, "plain_report");
    fresh();
    CHECK_INT(pml_allocator_events_install(), PML_EVENTS_CPU | PML_EVENTS_ACCELERATOR);
    plain_report(512, 512, 1024, 0);
    CHECK_INT(levels(1).level[PML_ALLOCATED], 512);
    CHECK_INT(fake_calls.report, 1);
    dlclose(handle);
}

static void all_is_followed_once_all_is_there(void)
{
    load_c10_cuda();
    int all = PML_EVENTS_CPU | PML_EVENTS_ACCELERATOR | PML_EVENTS_STREAMS;
    CHECK_INT(pml_allocator_events_install(), all);
    CHECK_INT(pml_allocator_events_install(), all);
}

/* ---- the CPU ---- */

static void cpu_memory_is_counted_by_its_requested_size(void)
{
    /* GIVEN */
    fresh();
    struct pml_window window = {.devices = 0};
    open_window(&window);
    /* WHEN */
    void *first = c10.allocate(1000), *second = c10.allocate(24);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 1024);
    CHECK_INT(pml_cpu_blocks_count(), 2);
    c10.free(first);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 24);
    c10.free(second);
    close_window(&window);
    /* THEN */
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
    CHECK_INT(levels(PML_CPU).gross, 1024);
    CHECK_INT(levels(PML_CPU).count, 2);
    CHECK_INT(window.span[PML_CPU].peak[PML_ALLOCATED], 1024);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

static void memory_from_elsewhere_is_not_counted(void)
{
    fresh();
    void *pointer = malloc(100);
    c10.free(pointer);
    CHECK_POINTER(below.freed, pointer);
    c10.free(NULL);
    CHECK_POINTER(below.freed, NULL);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
    CHECK_INT(ticks(), 0);
}

static void nothing_asked_for_is_nothing(void)
{
    fresh();
    void *pointer = c10.allocate(0);
    CHECK_INT(ticks(), 0);
    CHECK_INT(pml_cpu_blocks_count(), 0);
    c10.free(pointer);
    CHECK_INT(ticks(), 0);
}

static void a_failed_allocation_is_not_counted(void)
{
    fresh();
    CHECK_POINTER(c10.allocate(SIZE_MAX / 4), NULL);
    CHECK_INT(ticks(), 0);
    CHECK_INT(pml_cpu_blocks_count(), 0);
}

static void other_libraries_host_memory_is_not_counted(void)
{
    fresh();
    void *pointer = c10.host_allocate(100);
    CHECK(pointer != NULL);
    CHECK_INT(ticks(), 0);
    c10.host_free(pointer);
    CHECK_INT(ticks(), 0);
}

static void a_seeded_block_counts_until_it_is_freed(void)
{
    /* GIVEN memory whose allocation was not seen */
    fresh();
    void *pointer = malloc(100);
    /* WHEN, THEN */
    CHECK(pml_allocator_events_seed_cpu(pointer, 100));
    CHECK(!pml_allocator_events_seed_cpu(pointer, 100));
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 100);
    c10.free(pointer);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
}

static void what_has_no_memory_cannot_be_seeded(void)
{
    fresh();
    CHECK(!pml_allocator_events_seed_cpu(event, 0));
    CHECK(!pml_allocator_events_seed_cpu(event, -5));
    CHECK(!pml_allocator_events_seed_cpu(NULL, 100));
    CHECK_INT(pml_cpu_blocks_count(), 0);
    CHECK_INT(ticks(), 0);
}

/* A seeded block may be freed where nobody looks (a tensor over numpy's memory); its address comes again. */
static void a_block_that_replaces_a_forgotten_one_is_counted_alone(void)
{
    /* GIVEN */
    fresh();
    void *pointer = malloc(1000);
    CHECK(pml_allocator_events_seed_cpu(pointer, 700));
    /* WHEN */
    below.next = pointer;
    CHECK_POINTER(c10.allocate(1000), pointer);
    /* THEN */
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 1000);
    CHECK_INT(levels(PML_CPU).count, 2);
    CHECK_INT(pml_cpu_blocks_count(), 1);
    c10.free(pointer);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
}

/* Another thread may get the memory at once, and its allocation be seen before this free. */
static void a_free_is_told_before_the_memory_is_given_back(void)
{
    fresh();
    void *pointer = c10.allocate(64);
    below.level_at_free = -1;
    c10.free(pointer);
    CHECK_INT(below.level_at_free, 0);
    CHECK_POINTER(below.freed, pointer);
}

/* ---- accelerators ---- */

static void a_report_reaches_the_meter_and_the_profiler(void)
{
    /* GIVEN, WHEN */
    fresh();
    c10.report(event, 512, 2048, 1 << 20, CUDA_TYPE, 2);
    /* THEN the meter has it */
    CHECK_INT(levels(3).level[PML_ALLOCATED], 2048);
    CHECK_INT(levels(3).level[PML_ACTIVE], 2048);
    CHECK_INT(levels(3).level[PML_RESERVED], 1 << 20);
    CHECK_INT(levels(3).gross, 512);
    CHECK_INT(levels(3).count, 1);
    /* and the original every argument */
    CHECK_INT(fake_calls.report, 1);
    CHECK_POINTER(fake_calls.pointer, event);
    CHECK_INT(fake_calls.size, 512);
    CHECK_INT(fake_calls.allocated, 2048);
    CHECK_INT(fake_calls.reserved, 1 << 20);
    CHECK_INT(fake_calls.device.type, CUDA_TYPE);
    CHECK_INT(fake_calls.device.index, 2);
}

static void a_reported_free_is_not_an_allocation(void)
{
    fresh();
    c10.report(event, 512, 512, 1024, CUDA_TYPE, 0);
    c10.report(event, -512, 0, 1024, CUDA_TYPE, 0);
    CHECK_INT(levels(1).level[PML_ALLOCATED], 0);
    CHECK_INT(levels(1).level[PML_RESERVED], 1024);
    CHECK_INT(levels(1).gross, 512);
    CHECK_INT(levels(1).count, 1);
}

static void devices_that_are_not_counted_are_passed_on(void)
{
    fresh();
    c10.report(event, 512, 512, 512, CPU_TYPE, 0);
    c10.report(event, 512, 512, 512, CUDA_TYPE, -1);
    c10.report(event, 512, 512, 512, CUDA_TYPE, PML_MAX_DEVICES - 1);
    c10.report(event, 512, 512, 512, CUDA_TYPE, 127);
    c10.report(event, 512, 512, 512, XPU_TYPE, 0);
    CHECK_INT(ticks(), 0);
    CHECK_INT(fake_calls.report, 5);
    c10.report(event, 512, 512, 512, CUDA_TYPE, PML_MAX_DEVICES - 2);
    CHECK_INT(levels(PML_MAX_DEVICES - 1).level[PML_ALLOCATED], 512);
}

static void reports_can_be_ignored(void)
{
    fresh();
    pml_allocator_events_follow_accelerators(false);
    c10.report(event, 512, 512, 512, CUDA_TYPE, 0);
    CHECK_INT(ticks(), 0);
    CHECK_INT(fake_calls.report, 1);
    pml_allocator_events_follow_accelerators(true);
    c10.report(event, 512, 512, 512, CUDA_TYPE, 0);
    CHECK_INT(levels(1).level[PML_ALLOCATED], 512);
}

/* ---- freed blocks that wait for a stream ---- */

/* Allocate 4096, then free it while another stream still uses it. */
static void free_with_an_event(bool with_flags)
{
    c10.report(event, 4096, 4096, 8192, CUDA_TYPE, 0);
    if (with_flags)
        c10.record_flags(&event[0], stream, 3);
    else
        c10.record(&event[0], stream);
    c10.report(event, -4096, 0, 8192, CUDA_TYPE, 0);
}

static void a_freed_block_stays_active_until_its_event_is_done(void)
{
    /* GIVEN */
    fresh();
    free_with_an_event(false);
    CHECK_INT(levels(1).level[PML_ALLOCATED], 0);
    CHECK_INT(levels(1).level[PML_ACTIVE], 4096);
    CHECK_POINTER(fake_calls.event, &event[0]);
    CHECK_POINTER(fake_calls.stream, stream);
    /* WHEN it is not ready, THEN nothing changes */
    fake_result = 600;
    CHECK_INT(c10.query(&event[0]), 600);
    CHECK_INT(levels(1).level[PML_ACTIVE], 4096);
    /* WHEN it is ready */
    fake_result = 0;
    CHECK_INT(c10.query(&event[0]), 0);
    CHECK_INT(fake_calls.query, 2);
    CHECK_INT(levels(1).level[PML_ACTIVE], 0);
    CHECK_INT(levels(1).level[PML_RESERVED], 8192);
}

static void waiting_for_the_event_ends_it_too(void)
{
    fresh();
    free_with_an_event(true);
    CHECK_INT(fake_calls.flags, 3);
    CHECK_INT(fake_calls.record_flags, 1);
    CHECK_INT(levels(1).level[PML_ACTIVE], 4096);
    fake_result = 1;
    CHECK_INT(c10.synchronize(&event[0]), 1);
    CHECK_INT(levels(1).level[PML_ACTIVE], 4096);
    fake_result = 0;
    CHECK_INT(c10.synchronize(&event[0]), 0);
    CHECK_INT(levels(1).level[PML_ACTIVE], 0);
}

static void an_event_that_could_not_be_recorded_keeps_nothing(void)
{
    fresh();
    fake_result = 700;
    CHECK_INT(c10.record(&event[0], stream), 700);
    CHECK_INT(c10.record_flags(&event[0], stream, 0), 700);
    fake_result = 0;
    c10.report(event, -512, 0, 512, CUDA_TYPE, 0);
    CHECK_INT(levels(1).level[PML_ACTIVE], 0);
}

static void an_allocation_while_a_block_waits_is_active_on_top(void)
{
    fresh();
    free_with_an_event(false);
    c10.report(event, 100, 100, 8192, CUDA_TYPE, 0);
    CHECK_INT(levels(1).level[PML_ACTIVE], 4196);
    c10.query(&event[0]);
    CHECK_INT(levels(1).level[PML_ACTIVE], 100);
    CHECK_INT(levels(1).level[PML_ALLOCATED], 100);
}

static void events_recorded_before_an_allocation_are_not_the_next_frees(void)
{
    fresh();
    c10.record(&event[0], stream);
    c10.report(event, 512, 512, 512, CUDA_TYPE, 0);
    c10.report(event, -512, 0, 512, CUDA_TYPE, 0);
    CHECK_INT(levels(1).level[PML_ACTIVE], 0);
}

static void strangers_events_change_nothing(void)
{
    fresh();
    c10.report(event, 512, 512, 512, CUDA_TYPE, 0);
    uint64_t before = ticks();
    c10.query(&event[1]);
    c10.synchronize(&event[1]);
    CHECK_INT(ticks(), before);
    CHECK_INT(levels(1).level[PML_ACTIVE], 512);
}

/* ---- reserved memory given back ---- */

static void check_released(void)
{
    CHECK(ticks() > 0);
    CHECK(pml_allocator_events_take_released());
    CHECK(!pml_allocator_events_take_released());
}

static void memory_given_back_is_noted_once(void)
{
    fresh();
    CHECK(!pml_allocator_events_take_released());
    fake_result = 3;
    CHECK_INT(c10.device_free(event), 3);
    CHECK_POINTER(fake_calls.freed, event);
    check_released();
    fresh();
    CHECK_INT(c10.stream_synchronize(stream), 0);
    CHECK_POINTER(fake_calls.stream, stream);
    check_released();
    fresh();
    CHECK_INT(c10.device_synchronize(), 0);
    CHECK_INT(fake_calls.device_synchronize, 1);
    check_released();
}

/* ---- threads ---- */

#define THREADS 4
#define KEPT 10

static void *kept[THREADS][KEPT];

static void *allocate_much(void *argument)
{
    void **own = argument;
    for (int i = 0; i < 20000; i++) {
        void *first = c10.allocate(100), *second = c10.allocate(28);
        c10.free(first);
        c10.free(second);
    }
    for (int i = 0; i < KEPT; i++)
        own[i] = c10.allocate(64);
    return NULL;
}

static void calls_that_another_tool_has_taken_are_noticed(void)
{
    void *ours;
    fresh();
    CHECK(!pml_allocator_events_displaced());
    void *block = c10.allocate(1000);
    CHECK_INT(pml_elf_got_patch("libc10.so", "free", free_below, &ours), 1); /* as a tool does that puts back */
    CHECK(pml_allocator_events_displaced());
    c10.free(block);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 1000);
    pml_allocator_events_forget_blocks();
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
    CHECK_INT(pml_cpu_blocks_count(), 0);
    pml_allocator_events_install();
    CHECK(!pml_allocator_events_displaced());
    block = c10.allocate(24);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 24);
    c10.free(block);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
}

static void four_threads_add_up(void)
{
    /* GIVEN */
    fresh();
    pthread_t thread[THREADS];
    struct pml_window window = {.devices = 0};
    open_window(&window);
    /* WHEN */
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, allocate_much, kept[i]);
    while (ticks() < THREADS * 80000)
        fold();
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    close_window(&window);
    /* THEN */
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], THREADS * KEPT * 64);
    CHECK_INT(levels(PML_CPU).gross, THREADS * (20000 * 128 + KEPT * 64));
    CHECK_INT(pml_cpu_blocks_count(), THREADS * KEPT);
    CHECK_BETWEEN(THREADS * KEPT * 64, window.span[PML_CPU].peak[PML_ALLOCATED], THREADS * (128 + KEPT * 64));
    for (int i = 0; i < THREADS * KEPT; i++)
        c10.free(kept[i / KEPT][i % KEPT]);
    CHECK_INT(levels(PML_CPU).level[PML_ALLOCATED], 0);
}

/* Under a sanitizer: an impossible size fails as it does without. */
#define SANITIZER_OPTIONS __attribute__((visibility("default"), used)) const char *
SANITIZER_OPTIONS __asan_default_options(void);
SANITIZER_OPTIONS __tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

int main(void)
{
    RUN(without_libraries_nothing_is_followed);
    RUN(the_cpu_is_followed_once_libc10_is_there);
    RUN(a_library_without_events_is_followed_by_its_reports);
    RUN(all_is_followed_once_all_is_there);
    RUN(cpu_memory_is_counted_by_its_requested_size);
    RUN(memory_from_elsewhere_is_not_counted);
    RUN(nothing_asked_for_is_nothing);
    RUN(a_failed_allocation_is_not_counted);
    RUN(other_libraries_host_memory_is_not_counted);
    RUN(a_seeded_block_counts_until_it_is_freed);
    RUN(what_has_no_memory_cannot_be_seeded);
    RUN(a_block_that_replaces_a_forgotten_one_is_counted_alone);
    RUN(a_free_is_told_before_the_memory_is_given_back);
    RUN(a_report_reaches_the_meter_and_the_profiler);
    RUN(a_reported_free_is_not_an_allocation);
    RUN(devices_that_are_not_counted_are_passed_on);
    RUN(reports_can_be_ignored);
    RUN(a_freed_block_stays_active_until_its_event_is_done);
    RUN(waiting_for_the_event_ends_it_too);
    RUN(an_event_that_could_not_be_recorded_keeps_nothing);
    RUN(an_allocation_while_a_block_waits_is_active_on_top);
    RUN(events_recorded_before_an_allocation_are_not_the_next_frees);
    RUN(strangers_events_change_nothing);
    RUN(memory_given_back_is_noted_once);
    RUN(calls_that_another_tool_has_taken_are_noticed);
    RUN(four_threads_add_up);
    pml_cpu_blocks_clear();
    return check_report();
}
