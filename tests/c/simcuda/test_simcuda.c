/* The simulated CUDA runtime through its own API: accounting, contents, kinds of memory, streams, graphs, threads,
 * fork.
 *
 * No CUDA header: the calls are declared in simcuda_api.h as the library defines them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "simcuda_api.h"

enum { OK = 0, INVALID = 1, FULL = 2, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };
static const size_t TOTAL = (size_t)24 << 30;

static size_t free_bytes(void)
{
    size_t left, total;
    CHECK_INT(cudaMemGetInfo(&left, &total), OK);
    CHECK_INT(total, TOTAL);
    return left;
}

static size_t resident_pages(const void *start, size_t size)
{
    static unsigned char pages[1 << 16];
    size_t count = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK_INT(mincore((void *)start, size, pages), 0);
    for (size_t i = 0; i < size / page; i++)
        count += pages[i] & 1;
    return count;
}

/* ---- devices ---- */

static void devices_are_as_configured(void)
{
    int count = 0, value = 0, device = -1;
    CHECK_INT(cudaGetDeviceCount(&count), OK);
    CHECK_INT(count, 2);
    CHECK_INT(cudaDeviceGetAttribute(&value, 75, 1), OK);
    CHECK_INT(value, 8);
    CHECK_INT(cudaDeviceGetAttribute(&value, 75, 2), 101);
    CHECK_INT(cudaGetLastError(), 101);
    CHECK_INT(cudaGetLastError(), OK);
    CHECK_INT(cudaSetDevice(2), 101);
    CHECK_INT(cudaSetDevice(1), OK);
    CHECK_INT(cudaGetDevice(&device), OK);
    CHECK_INT(device, 1);
    CHECK_INT(cudaSetDevice(0), OK);
    cudaGetLastError();
}

static void peers_are_enabled_once(void)
{
    CHECK_INT(cudaDeviceEnablePeerAccess(1, 0), OK);
    CHECK_INT(cudaDeviceEnablePeerAccess(1, 0), 704);
    CHECK_INT(cudaDeviceEnablePeerAccess(0, 0), 101);
    CHECK_INT(cudaDeviceDisablePeerAccess(1), OK);
    CHECK_INT(cudaDeviceDisablePeerAccess(1), 705);
    cudaGetLastError();
}

/* ---- memory ---- */

static void allocations_are_counted(void)
{
    void *first, *second;
    CHECK_INT(cudaMalloc(&first, 1000), OK);
    CHECK_INT(free_bytes(), TOTAL - 1024);
    CHECK_INT(cudaMalloc(&second, TOTAL), FULL);
    CHECK_POINTER(second, NULL);
    CHECK_INT(cudaPeekAtLastError(), FULL);
    CHECK_INT(cudaMalloc(&second, TOTAL - 1024), OK);
    CHECK_INT(cudaPeekAtLastError(), FULL);
    CHECK_INT(cudaGetLastError(), FULL);
    CHECK_INT(free_bytes(), 0);
    CHECK_INT(cudaFree((char *)second + 512), INVALID);
    CHECK_INT(cudaFree(second), OK);
    CHECK_INT(cudaFree(second), INVALID);
    CHECK_INT(cudaFree(first), OK);
    CHECK_INT(cudaFree(NULL), OK);
    CHECK_INT(cudaMalloc(&first, 0), OK);
    CHECK_POINTER(first, NULL);
    CHECK_INT(cudaMalloc(&first, SIZE_MAX), FULL);
    CHECK_INT(free_bytes(), TOTAL);
    cudaGetLastError();
}

static void pointers_say_what_they_are(void)
{
    struct pointer_attributes attributes;
    void *device, *host;
    char around[80], *own = around + 8;
    CHECK_INT(cudaSetDevice(1), OK);
    CHECK_INT(cudaMalloc(&device, 4096), OK);
    CHECK_INT(cudaSetDevice(0), OK);
    CHECK_INT(cudaHostAlloc(&host, 100, 0), OK);
    CHECK_INT(cudaPointerGetAttributes(&attributes, (char *)device + 4095), OK);
    CHECK_INT(attributes.type, 2);
    CHECK_INT(attributes.device, 1);
    CHECK_INT(cudaPointerGetAttributes(&attributes, (char *)host + 99), OK);
    CHECK_INT(attributes.type, 1);
    CHECK_INT(cudaPointerGetAttributes(&attributes, own), OK);
    CHECK_INT(attributes.type, 0);
    CHECK_INT(cudaHostRegister(own, 64, 0), OK);
    CHECK_INT(cudaHostRegister(own + 8, 8, 0), ALREADY_REGISTERED);
    CHECK_INT(cudaHostRegister(own - 8, 16, 0), ALREADY_REGISTERED);
    CHECK_INT(cudaPointerGetAttributes(&attributes, own + 63), OK);
    CHECK_INT(attributes.type, 1);
    CHECK_INT(cudaHostUnregister(own), OK);
    CHECK_INT(cudaHostUnregister(own), NOT_REGISTERED);
    CHECK_INT(cudaFreeHost(device), INVALID);
    CHECK_INT(cudaFreeHost(host), OK);
    CHECK_INT(cudaFree(device), OK);
    cudaGetLastError();
}

/* ---- contents: against a model in host memory ---- */

enum { SPAN = 300000 }; /* several chunks, not a multiple of one */

static void random_piece(struct check_random *random, size_t *at, size_t *size)
{
    *at = (size_t)random_below(random, SPAN);
    *size = (size_t)random_below(random, random_below(random, 3) ? 2000 : SPAN);
    if (*size > SPAN - *at)
        *size = SPAN - *at;
}

static void change(struct check_random *random, char *device, char *model, char *scratch)
{
    size_t at, size;
    random_piece(random, &at, &size);
    switch (random_below(random, 4)) {
    case 0:
        for (size_t i = 0; i < size; i++)
            scratch[i] = (char)random_below(random, 256);
        CHECK_INT(cudaMemcpy(device + at, scratch, size, 1), OK);
        memcpy(model + at, scratch, size);
        break;
    case 1:
        CHECK_INT(cudaMemset(device + at, 0, size), OK);
        memset(model + at, 0, size);
        break;
    case 2:
        CHECK_INT(cudaMemset(device + at, 7, size), OK);
        memset(model + at, 7, size);
        break;
    default:
        memset(scratch, 0, size);
        CHECK_INT(cudaMemcpy(device + at, scratch, size, 1), OK);
        memset(model + at, 0, size);
    }
}

static void copy_and_compare(struct check_random *random)
{
    char *device, *other;
    static char model[SPAN], other_model[SPAN], scratch[SPAN], back[SPAN];
    memset(model, 0, SPAN);
    memset(other_model, 0, SPAN);
    CHECK_INT(cudaMalloc((void **)&device, SPAN), OK);
    CHECK_INT(cudaMalloc((void **)&other, SPAN), OK);
    for (int round = 0; round < 40; round++) {
        change(random, device, model, scratch);
        if (random_below(random, 4) == 0) {
            size_t at, size;
            random_piece(random, &at, &size);
            CHECK_INT(cudaMemcpyPeerAsync(other + at, 0, device + at, 0, size, NULL), OK);
            memcpy(other_model + at, model + at, size);
        }
        CHECK_INT(cudaMemcpy(back, device, SPAN, 2), OK);
        CHECK(memcmp(back, model, SPAN) == 0);
        CHECK_INT(cudaMemcpy(back, other, SPAN, 2), OK);
        CHECK(memcmp(back, other_model, SPAN) == 0);
    }
    CHECK_INT(cudaMemcpy(device + SPAN, back, (size_t)1 << 20, 1), INVALID);
    CHECK_INT(cudaMemset(device + 100, 0, (size_t)1 << 40), INVALID);
    CHECK_INT(cudaFree(device), OK);
    CHECK_INT(cudaFree(other), OK);
    cudaGetLastError();
}

static void copies_are_real(void)
{
    check_seeds(copy_and_compare, 8);
}

static void zeros_take_no_memory(void)
{
    char *device, *other, last = 1;
    static const char nothing[1 << 18];
    size_t big = (size_t)10 << 30, seen = (size_t)8 << 20;
    CHECK_INT(cudaMalloc((void **)&device, big), OK);
    CHECK_INT(cudaMalloc((void **)&other, big), OK);
    CHECK_INT(cudaMemset(device, 0, big), OK);
    CHECK_INT(cudaMemcpy(device + 12345, nothing, sizeof nothing, 1), OK);
    CHECK_INT(cudaMemcpy(other, device, big, 3), OK);
    CHECK_INT(cudaMemcpy(&last, other + big - 1, 1, 2), OK);
    CHECK_INT(last, 0);
    CHECK_INT(resident_pages(device, seen), 0);
    CHECK_INT(resident_pages(other, seen), 0);
    CHECK_INT(cudaMemset(device, 1, seen), OK);
    CHECK(resident_pages(device, seen) > 0);
    CHECK_INT(cudaMemset(device, 0, big), OK);
    CHECK_INT(resident_pages(device, seen), 0);
    CHECK_INT(cudaFree(device), OK);
    CHECK_INT(cudaFree(other), OK);
}

static void rows_are_copied(void)
{
    char from[4][8], to[4][6], *device;
    memset(to, 9, sizeof to);
    for (int i = 0; i < 4; i++)
        memset(from[i], i + 1, 8);
    CHECK_INT(cudaMalloc((void **)&device, 64), OK);
    CHECK_INT(cudaMemcpy2DAsync(device, 16, from, 8, 8, 4, 1, NULL), OK);
    CHECK_INT(cudaMemcpy2DAsync(to, 6, device, 16, 5, 4, 2, NULL), OK);
    CHECK_INT(to[3][4], 4);
    CHECK_INT(to[3][5], 9);
    CHECK_INT(cudaMemcpy2DAsync(to, 4, device, 16, 5, 4, 2, NULL), INVALID);
    CHECK_INT(cudaFree(device), OK);
    cudaGetLastError();
}

/* ---- virtual memory ---- */

static void mappings_hold_physical_memory(void)
{
    const size_t piece = (size_t)2 << 20;
    struct allocation_prop device_one = {.type = 1, .location_type = 1, .location_id = 1};
    uint64_t space, handles[2], kept;
    char value = 5;
    CHECK_INT(cuMemAddressReserve(&space, 8 * piece, 0, 0, 0), OK);
    CHECK_INT(cuMemCreate(&handles[0], piece + 1, &device_one, 0), INVALID);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(cuMemCreate(&handles[i], piece, &device_one, 0), OK);
        CHECK_INT(cuMemMap(space + i * piece, piece, 0, handles[i], 0), OK);
    }
    CHECK_INT(cuMemMap(space, piece, 0, handles[1], 0), INVALID);
    CHECK_INT(cuMemMap(space + 8 * piece, piece, 0, handles[1], 0), INVALID);
    CHECK_INT(pml_simcuda_used(1), 2 * piece);
    CHECK_INT(cudaMemcpy((void *)(space + piece - 1), &value, 1, 1), OK);
    CHECK_INT(cuMemRetainAllocationHandle(&kept, (void *)(space + 5)), OK);
    CHECK_INT(kept, handles[0]);
    for (int i = 0; i < 2; i++)
        CHECK_INT(cuMemRelease(handles[i]), OK);
    CHECK_INT(cuMemUnmap(space, 2 * piece), OK);
    CHECK_INT(pml_simcuda_used(1), piece);
    CHECK_INT(cuMemRelease(kept), OK);
    CHECK_INT(pml_simcuda_used(1), 0);
    CHECK_INT(cuMemUnmap(space, piece), INVALID);
    CHECK_INT(cudaMemcpy(&value, (void *)(space + piece - 1), 1, 2), OK);
    CHECK_INT(value, 0);
    CHECK_INT(cuMemAddressFree(space, 8 * piece), OK);
}

/* ---- streams, events, graphs ---- */

static void count_call(void *data)
{
    ++*(int *)data;
}

static void streams_and_events(void)
{
    void *stream, *start, *end;
    float milliseconds = -1;
    int priority = 1, calls = 0;
    CHECK_INT(cudaStreamCreateWithPriority(&stream, 1, -9), OK);
    CHECK_INT(cudaStreamGetPriority(stream, &priority), OK);
    CHECK_INT(priority, -5);
    CHECK_INT(cudaEventCreateWithFlags(&start, 0), OK);
    CHECK_INT(cudaEventCreateWithFlags(&end, 0), OK);
    CHECK_INT(cudaEventElapsedTime(&milliseconds, start, end), 400);
    CHECK_INT(cudaEventRecord(start, stream), OK);
    CHECK_INT(cudaEventRecord(end, stream), OK);
    CHECK_INT(cudaEventElapsedTime(&milliseconds, start, end), OK);
    CHECK(milliseconds >= 0 && milliseconds < 1000);
    CHECK_INT(cudaLaunchHostFunc(stream, count_call, &calls), OK);
    CHECK_INT(calls, 1);
    CHECK_INT(cudaEventDestroy(start), OK);
    CHECK_INT(cudaEventDestroy(end), OK);
    CHECK_INT(cudaStreamDestroy(stream), OK);
    CHECK_INT(cudaStreamDestroy(stream), 400);
    cudaGetLastError();
}

static void captures_spread_by_events(void)
{
    void *first, *second, *event, *graph, *executable, *object;
    int status = 9, released = 0;
    size_t nodes = 0;
    CHECK_INT(cudaStreamCreateWithPriority(&first, 1, 0), OK);
    CHECK_INT(cudaStreamCreateWithPriority(&second, 1, 0), OK);
    CHECK_INT(cudaEventCreateWithFlags(&event, 2), OK);
    CHECK_INT(cudaStreamBeginCapture(NULL, 0), 906);
    CHECK_INT(cudaStreamBeginCapture(first, 0), OK);
    CHECK_INT(cudaStreamBeginCapture(first, 0), INVALID);
    CHECK_INT(cudaEventRecord(event, first), OK);
    CHECK_INT(cudaStreamWaitEvent(second, event, 0), OK);
    CHECK_INT(cudaStreamIsCapturing(second, &status), OK);
    CHECK_INT(status, 1);
    struct dim3 one = {1, 1, 1}, none = {0, 1, 1};
    CHECK_INT(cudaLaunchKernel(NULL, one, one, NULL, 0, second), OK);
    CHECK_INT(cudaLaunchKernel(NULL, none, one, NULL, 0, second), 9);
    CHECK_INT(cudaStreamEndCapture(first, &graph), OK);
    CHECK_INT(cudaStreamIsCapturing(second, &status), OK);
    CHECK_INT(status, 0);
    CHECK_INT(cudaStreamWaitEvent(second, event, 0), OK);
    CHECK_INT(cudaStreamIsCapturing(second, &status), OK);
    CHECK_INT(status, 0);
    CHECK_INT(cudaGraphGetNodes(graph, NULL, &nodes), OK);
    CHECK_INT(nodes, 1);
    CHECK_INT(cudaUserObjectCreate(&object, &released, count_call, 1, 1), OK);
    CHECK_INT(cudaGraphRetainUserObject(graph, object, 1, 0), OK);
    CHECK_INT(cudaUserObjectRelease(object, 1), OK);
    CHECK_INT(released, 0);
    CHECK_INT(cudaGraphInstantiateWithFlags(&executable, graph, 0), OK);
    CHECK_INT(cudaGraphLaunch(executable, first), OK);
    CHECK_INT(cudaGraphExecDestroy(executable), OK);
    CHECK_INT(cudaGraphDestroy(graph), OK);
    CHECK_INT(released, 1);
    CHECK_INT(cudaStreamEndCapture(first, &graph), 903);
    CHECK_INT(cudaEventDestroy(event), OK);
    CHECK_INT(cudaStreamDestroy(first), OK);
    CHECK_INT(cudaStreamDestroy(second), OK);
    cudaGetLastError();
}

static void a_launch_gets_its_configuration_back(void)
{
    struct dim3 grid = {1, 2, 3}, block = {4, 5, 6}, got_grid, got_block;
    size_t shared;
    void *stream;
    CHECK_INT(__cudaPushCallConfiguration(grid, block, 77, &shared), OK);
    CHECK_INT(__cudaPopCallConfiguration(&got_grid, &got_block, &shared, &stream), OK);
    CHECK(memcmp(&grid, &got_grid, sizeof grid) == 0 && memcmp(&block, &got_block, sizeof block) == 0);
    CHECK_INT(shared, 77);
    CHECK_POINTER(stream, &shared);
    CHECK_INT(__cudaPopCallConfiguration(&got_grid, &got_block, &shared, &stream), 9);
    cudaGetLastError();
}

/* ---- threads and fork ---- */

enum { THREADS = 8 };
static _Atomic int g_wrong;

static void *allocate_and_copy(void *argument)
{
    uint64_t pattern[64], back[64];
    int number = (int)(intptr_t)argument;
    cudaSetDevice(number % 2);
    for (int round = 0; round < 300; round++) {
        void *blocks[4];
        for (int i = 0; i < 4; i++)
            g_wrong += cudaMalloc(&blocks[i], (size_t)(round % 7 + 1) << 17) != OK;
        for (int i = 0; i < 64; i++)
            pattern[i] = (uint64_t)number << 32 | (uint64_t)round;
        g_wrong += cudaMemcpy((char *)blocks[2] + 8 * round, pattern, sizeof pattern, 1) != OK;
        g_wrong += cudaMemcpy(back, (char *)blocks[2] + 8 * round, sizeof back, 2) != OK;
        g_wrong += memcmp(back, pattern, sizeof back) != 0;
        for (int i = 0; i < 4; i++)
            g_wrong += cudaFree(blocks[i]) != OK;
    }
    return NULL;
}

static void start(pthread_t threads[THREADS])
{
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, allocate_and_copy, (void *)i), 0);
}

static void join(pthread_t threads[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(g_wrong, 0);
}

static void threads_do_not_disturb_each_other(void)
{
    pthread_t threads[THREADS];
    start(threads);
    join(threads);
    CHECK_INT(free_bytes(), TOTAL);
    CHECK_INT(pml_simcuda_used(1), 0);
}

static void a_child_forked_between_threads_works(void)
{
    pthread_t threads[THREADS];
    start(threads);
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            void *block, *stream;
            alarm(20);
            if (cudaMalloc(&block, 4096) || cudaStreamCreateWithPriority(&stream, 0, 0) || cudaFree(block))
                _exit(1);
            kill(getpid(), SIGKILL); /* no check for leaks: what the other threads were about to enter is lost here */
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGKILL);
    }
    join(threads);
}

int main(void)
{
    struct device_spec spec = {
        .name = "Simulated", .total_memory = TOTAL, .major = 8, .minor = 6, .sm_count = 10, .threads_per_sm = 1536};
    unsetenv("CUDA_VISIBLE_DEVICES");
    check_state.test = "main";
    CHECK_INT(pml_simcuda_configure(&spec, 9), 1);
    CHECK_INT(pml_simcuda_configure(&spec, 2), 0);
    CHECK_INT(pml_simcuda_configure(&spec, 2), 0);
    CHECK_INT(pml_simcuda_configure(&spec, 3), 2);
    RUN(devices_are_as_configured);
    RUN(peers_are_enabled_once);
    RUN(allocations_are_counted);
    RUN(pointers_say_what_they_are);
    RUN(copies_are_real);
    RUN(zeros_take_no_memory);
    RUN(rows_are_copied);
    RUN(mappings_hold_physical_memory);
    RUN(streams_and_events);
    RUN(captures_spread_by_events);
    RUN(a_launch_gets_its_configuration_back);
    RUN(threads_do_not_disturb_each_other);
    RUN(a_child_forked_between_threads_works);
    return check_report();
}
