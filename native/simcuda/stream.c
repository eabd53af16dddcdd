/* Runtime API: streams, events, host callbacks.
 *
 * Purpose: distinct handles with truthful bookkeeping. Work is done when it is enqueued, so that every query says
 * "done". A stream that is being captured (graph.c) is marked; events carry the mark to streams that wait for them, as
 * in CUDA. Ownership: a stream or event belongs to the caller who created it. Threads: any. Locks: one mutex over the
 * list of streams and their marks.
 */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct sim_event {
    _Atomic int64_t nanoseconds; /* 0: never recorded */
    struct sim_graph *capture;   /* under the streams' lock */
    unsigned flags;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sim_stream *all_streams;

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void after_fork_child(void)
{
    pthread_mutex_init(&mutex, NULL);
}
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* NULL, 1 and 2 name the default streams, which are never captured. */
static struct sim_stream *real_stream(void *stream)
{
    return (uintptr_t)stream <= 2 ? NULL : stream;
}

/* ---- streams ---- */

int sim_stream_create(void **stream, unsigned flags, int priority)
{
    struct sim_stream *made = stream ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return stream ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    made->device = sim_device_current();
    made->flags = flags;
    made->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    pthread_mutex_lock(&mutex);
    made->next = all_streams;
    all_streams = made;
    pthread_mutex_unlock(&mutex);
    *stream = made;
    return CUDA_OK;
}

SIM_API int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return sim_error_result(sim_stream_create(stream, flags, priority));
}

SIM_API int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    return sim_error_result(sim_stream_create(stream, flags, 0));
}

SIM_API int cudaStreamCreate(void **stream)
{
    return sim_error_result(sim_stream_create(stream, 0, 0));
}

SIM_API int cudaStreamDestroy(void *stream)
{
    struct sim_stream **link = &all_streams;
    pthread_mutex_lock(&mutex);
    while (*link != NULL && *link != stream)
        link = &(*link)->next;
    struct sim_stream *found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&mutex);
    free(found);
    return sim_error_result(found ? CUDA_OK : CUDA_INVALID_HANDLE);
}

SIM_API int cudaStreamSynchronize(void *stream)
{
    return CUDA_OK;
}

SIM_API int cudaStreamQuery(void *stream)
{
    return CUDA_OK;
}

SIM_API int cudaDeviceSynchronize(void)
{
    return CUDA_OK;
}

SIM_API int cudaStreamGetPriority(void *stream, int *priority)
{
    struct sim_stream *known = real_stream(stream);
    *priority = known ? known->priority : 0;
    return CUDA_OK;
}

SIM_API int cudaStreamGetFlags(void *stream, unsigned *flags)
{
    struct sim_stream *known = real_stream(stream);
    *flags = known ? known->flags : 0;
    return CUDA_OK;
}

SIM_API int cudaStreamGetDevice(void *stream, int *device)
{
    struct sim_stream *known = real_stream(stream);
    *device = known ? known->device : sim_device_current();
    return CUDA_OK;
}

SIM_API int cudaStreamGetId(void *stream, unsigned long long *id)
{
    *id = (uintptr_t)stream;
    return CUDA_OK;
}

SIM_API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_OK;
}

/* ---- callbacks: the work before them is done, so they run at once, on the calling thread ---- */

SIM_API int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    function(data);
    return CUDA_OK;
}

SIM_API int cudaStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data, unsigned flags)
{
    function(stream, CUDA_OK, data);
    return CUDA_OK;
}

/* ---- capture marks ---- */

struct sim_graph *sim_stream_capture(void *stream)
{
    struct sim_stream *known = real_stream(stream);
    if (known == NULL)
        return NULL;
    pthread_mutex_lock(&mutex);
    struct sim_graph *graph = known->capture;
    pthread_mutex_unlock(&mutex);
    return graph;
}

int sim_stream_begin(void *stream, struct sim_graph *graph)
{
    struct sim_stream *known = real_stream(stream);
    if (known == NULL)
        return CUDA_CAPTURE_IMPLICIT;
    pthread_mutex_lock(&mutex);
    int error = known->capture ? CUDA_INVALID_VALUE : CUDA_OK;
    if (error == CUDA_OK)
        known->capture = graph;
    pthread_mutex_unlock(&mutex);
    return error;
}

/* Ends the capture of a stream and of all that joined it. */
int sim_stream_end(void *stream, struct sim_graph **graph)
{
    struct sim_stream *known = real_stream(stream);
    *graph = NULL;
    if (known == NULL)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    *graph = known->capture;
    for (struct sim_stream *each = all_streams; each != NULL && *graph != NULL; each = each->next)
        if (each->capture == *graph)
            each->capture = NULL;
    pthread_mutex_unlock(&mutex);
    return *graph ? CUDA_OK : CUDA_CAPTURE_UNMATCHED;
}

/* ---- events ---- */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

SIM_API int cudaEventCreateWithFlags(void **event, unsigned flags)
{
    struct sim_event *made = event ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return sim_error_result(event ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE);
    made->flags = flags;
    *event = made;
    return CUDA_OK;
}

SIM_API int cudaEventCreate(void **event)
{
    return cudaEventCreateWithFlags(event, 0);
}

SIM_API int cudaEventDestroy(void *event)
{
    free(event);
    return sim_error_result(event ? CUDA_OK : CUDA_INVALID_HANDLE);
}

SIM_API int cudaEventRecordWithFlags(void *handle, void *stream, unsigned flags)
{
    struct sim_event *event = handle;
    struct sim_stream *known = real_stream(stream);
    if (event == NULL)
        return sim_error_result(CUDA_INVALID_HANDLE);
    pthread_mutex_lock(&mutex);
    event->capture = known ? known->capture : NULL;
    pthread_mutex_unlock(&mutex);
    atomic_store(&event->nanoseconds, now());
    return CUDA_OK;
}

SIM_API int cudaEventRecord(void *event, void *stream)
{
    return cudaEventRecordWithFlags(event, stream, 0);
}

SIM_API int cudaStreamWaitEvent(void *stream, void *handle, unsigned flags)
{
    struct sim_event *event = handle;
    struct sim_stream *known = real_stream(stream);
    if (event == NULL)
        return sim_error_result(CUDA_INVALID_HANDLE);
    if (known == NULL)
        return CUDA_OK;
    pthread_mutex_lock(&mutex);
    bool live = false; /* the event's capture may have ended since */
    for (struct sim_stream *each = all_streams; each != NULL && event->capture != NULL; each = each->next)
        live = live || each->capture == event->capture;
    if (live && known->capture == NULL)
        known->capture = event->capture;
    pthread_mutex_unlock(&mutex);
    return CUDA_OK;
}

SIM_API int cudaEventQuery(void *event)
{
    return sim_error_result(event ? CUDA_OK : CUDA_INVALID_HANDLE);
}

SIM_API int cudaEventSynchronize(void *event)
{
    return sim_error_result(event ? CUDA_OK : CUDA_INVALID_HANDLE);
}

/* Host time between the two records: it says nothing about a device. */
SIM_API int cudaEventElapsedTime(float *milliseconds, void *start_handle, void *end_handle)
{
    struct sim_event *start = start_handle, *end = end_handle;
    if (start == NULL || end == NULL || milliseconds == NULL)
        return sim_error_result(CUDA_INVALID_VALUE);
    int64_t from = atomic_load(&start->nanoseconds), to = atomic_load(&end->nanoseconds);
    if (from == 0 || to == 0 || (start->flags | end->flags) & CUDA_EVENT_DISABLE_TIMING)
        return sim_error_result(CUDA_INVALID_HANDLE);
    *milliseconds = (float)(to - from) / 1e6f;
    return CUDA_OK;
}
