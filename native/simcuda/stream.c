/* Runtime API: streams, events, host callbacks.
 *
 * Purpose: distinct handles with truthful bookkeeping. Work is done when it is enqueued, so that every query says "done".
 *   A stream that is being captured (graph.c) is marked; events carry the mark to streams that wait for them, as in CUDA.
 * Ownership: a stream or event belongs to the caller who created it. Threads: any.
 * Locks: one mutex over the list of streams and their marks.
 */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    _Atomic int64_t nanoseconds; /* 0: never recorded */
    pml_graph *capture;          /* under the streams' lock */
    unsigned flags;
} pml_event;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pml_stream *g_streams;

static void before_fork(void) { pthread_mutex_lock(&g_lock); }
static void after_fork_parent(void) { pthread_mutex_unlock(&g_lock); }
static void after_fork_child(void) { pthread_mutex_init(&g_lock, NULL); }
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* NULL, 1 and 2 name the default streams, which are never captured. */
static pml_stream *real_stream(void *stream) { return (uintptr_t)stream <= 2 ? NULL : stream; }

/* ---- streams ---- */

int pml_sim_stream_create(void **stream, unsigned flags, int priority)
{
    pml_stream *made = stream ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return stream ? PML_CUDA_OUT_OF_MEMORY : PML_CUDA_INVALID_VALUE;
    made->device = pml_sim_device_current();
    made->flags = flags;
    made->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    pthread_mutex_lock(&g_lock);
    made->next = g_streams;
    g_streams = made;
    pthread_mutex_unlock(&g_lock);
    *stream = made;
    return PML_CUDA_OK;
}

PML_API int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return pml_sim_result(pml_sim_stream_create(stream, flags, priority));
}

PML_API int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    return pml_sim_result(pml_sim_stream_create(stream, flags, 0));
}

PML_API int cudaStreamCreate(void **stream) { return pml_sim_result(pml_sim_stream_create(stream, 0, 0)); }

PML_API int cudaStreamDestroy(void *stream)
{
    pml_stream **link = &g_streams;
    pthread_mutex_lock(&g_lock);
    while (*link != NULL && *link != stream)
        link = &(*link)->next;
    pml_stream *found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&g_lock);
    free(found);
    return pml_sim_result(found ? PML_CUDA_OK : PML_CUDA_INVALID_HANDLE);
}

PML_API int cudaStreamSynchronize(void *stream) { return PML_CUDA_OK; }

PML_API int cudaStreamQuery(void *stream) { return PML_CUDA_OK; }

PML_API int cudaDeviceSynchronize(void) { return PML_CUDA_OK; }

PML_API int cudaStreamGetPriority(void *stream, int *priority)
{
    pml_stream *known = real_stream(stream);
    *priority = known ? known->priority : 0;
    return PML_CUDA_OK;
}

PML_API int cudaStreamGetFlags(void *stream, unsigned *flags)
{
    pml_stream *known = real_stream(stream);
    *flags = known ? known->flags : 0;
    return PML_CUDA_OK;
}

PML_API int cudaStreamGetDevice(void *stream, int *device)
{
    pml_stream *known = real_stream(stream);
    *device = known ? known->device : pml_sim_device_current();
    return PML_CUDA_OK;
}

PML_API int cudaStreamGetId(void *stream, unsigned long long *id)
{
    *id = (uintptr_t)stream;
    return PML_CUDA_OK;
}

PML_API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return PML_CUDA_OK;
}

/* ---- callbacks: the work before them is done, so they run at once, on the calling thread ---- */

PML_API int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    function(data);
    return PML_CUDA_OK;
}

PML_API int cudaStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data, unsigned flags)
{
    function(stream, PML_CUDA_OK, data);
    return PML_CUDA_OK;
}

/* ---- capture marks ---- */

pml_graph *pml_sim_stream_capture(void *stream)
{
    pml_stream *known = real_stream(stream);
    if (known == NULL)
        return NULL;
    pthread_mutex_lock(&g_lock);
    pml_graph *graph = known->capture;
    pthread_mutex_unlock(&g_lock);
    return graph;
}

int pml_sim_stream_begin(void *stream, pml_graph *graph)
{
    pml_stream *known = real_stream(stream);
    if (known == NULL)
        return PML_CUDA_CAPTURE_IMPLICIT;
    pthread_mutex_lock(&g_lock);
    int error = known->capture ? PML_CUDA_INVALID_VALUE : PML_CUDA_OK;
    if (error == PML_CUDA_OK)
        known->capture = graph;
    pthread_mutex_unlock(&g_lock);
    return error;
}

/* Ends the capture of a stream and of all that joined it. */
int pml_sim_stream_end(void *stream, pml_graph **graph)
{
    pml_stream *known = real_stream(stream);
    *graph = NULL;
    if (known == NULL)
        return PML_CUDA_INVALID_VALUE;
    pthread_mutex_lock(&g_lock);
    *graph = known->capture;
    for (pml_stream *each = g_streams; each != NULL && *graph != NULL; each = each->next)
        if (each->capture == *graph)
            each->capture = NULL;
    pthread_mutex_unlock(&g_lock);
    return *graph ? PML_CUDA_OK : PML_CUDA_CAPTURE_UNMATCHED;
}

/* ---- events ---- */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

PML_API int cudaEventCreateWithFlags(void **event, unsigned flags)
{
    pml_event *made = event ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return pml_sim_result(event ? PML_CUDA_OUT_OF_MEMORY : PML_CUDA_INVALID_VALUE);
    made->flags = flags;
    *event = made;
    return PML_CUDA_OK;
}

PML_API int cudaEventCreate(void **event) { return cudaEventCreateWithFlags(event, 0); }

PML_API int cudaEventDestroy(void *event)
{
    free(event);
    return pml_sim_result(event ? PML_CUDA_OK : PML_CUDA_INVALID_HANDLE);
}

PML_API int cudaEventRecordWithFlags(void *handle, void *stream, unsigned flags)
{
    pml_event *event = handle;
    pml_stream *known = real_stream(stream);
    if (event == NULL)
        return pml_sim_result(PML_CUDA_INVALID_HANDLE);
    pthread_mutex_lock(&g_lock);
    event->capture = known ? known->capture : NULL;
    pthread_mutex_unlock(&g_lock);
    atomic_store(&event->nanoseconds, now());
    return PML_CUDA_OK;
}

PML_API int cudaEventRecord(void *event, void *stream) { return cudaEventRecordWithFlags(event, stream, 0); }

PML_API int cudaStreamWaitEvent(void *stream, void *handle, unsigned flags)
{
    pml_event *event = handle;
    pml_stream *known = real_stream(stream);
    if (event == NULL)
        return pml_sim_result(PML_CUDA_INVALID_HANDLE);
    if (known == NULL)
        return PML_CUDA_OK;
    pthread_mutex_lock(&g_lock);
    bool live = false; /* the event's capture may have ended since */
    for (pml_stream *each = g_streams; each != NULL && event->capture != NULL; each = each->next)
        live = live || each->capture == event->capture;
    if (live && known->capture == NULL)
        known->capture = event->capture;
    pthread_mutex_unlock(&g_lock);
    return PML_CUDA_OK;
}

PML_API int cudaEventQuery(void *event) { return pml_sim_result(event ? PML_CUDA_OK : PML_CUDA_INVALID_HANDLE); }

PML_API int cudaEventSynchronize(void *event) { return pml_sim_result(event ? PML_CUDA_OK : PML_CUDA_INVALID_HANDLE); }

/* Host time between the two records: it says nothing about a device. */
PML_API int cudaEventElapsedTime(float *milliseconds, void *start_handle, void *end_handle)
{
    pml_event *start = start_handle, *end = end_handle;
    if (start == NULL || end == NULL || milliseconds == NULL)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    int64_t from = atomic_load(&start->nanoseconds), to = atomic_load(&end->nanoseconds);
    if (from == 0 || to == 0 || (start->flags | end->flags) & PML_EVENT_DISABLE_TIMING)
        return pml_sim_result(PML_CUDA_INVALID_HANDLE);
    *milliseconds = (float)(to - from) / 1e6f;
    return PML_CUDA_OK;
}
