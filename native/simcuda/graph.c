/* Runtime API: stream capture and graphs.
 *
 * Purpose: enough of graphs that torch.cuda.graph captures and replays: the private pool it allocates from is PyTorch's
 * own. A graph only counts the work enqueued into it; launching it does nothing, like any kernel. Ownership: a graph
 * and its executable are freed by their destroy functions; user objects kept by a graph are released with it. Threads:
 * any. Locks: none of its own (a graph is changed by the thread that captures or destroys it, as CUDA requires; its
 * work counter is an atomic); stream.c's for the marks on streams.
 */
#include "sim.h"

#include <stdlib.h>

struct sim_user_object {
    struct sim_user_object *next; /* in the graph that retains it */
    void *data;
    void (*destroy)(void *);
    _Atomic unsigned references;
};

struct sim_kept {
    struct sim_kept *next;
    struct sim_user_object *object;
    unsigned count;
};

struct sim_graph {
    unsigned long long id;
    _Atomic size_t nodes;
    struct sim_kept *kept;
};

static _Atomic unsigned long long next_id = 1;

void sim_graph_note_work(void *stream)
{
    struct sim_graph *graph = sim_stream_capture(stream);
    if (graph != NULL)
        atomic_fetch_add(&graph->nodes, 1);
}

SIM_API int cudaGraphCreate(void **graph, unsigned flags)
{
    struct sim_graph *made = calloc(1, sizeof *made);
    if (made == NULL)
        return sim_error_result(CUDA_OUT_OF_MEMORY);
    made->id = atomic_fetch_add(&next_id, 1);
    *graph = made;
    return CUDA_OK;
}

/* ---- capture ---- */

SIM_API int cudaStreamBeginCapture(void *stream, int mode)
{
    void *graph;
    int error = cudaGraphCreate(&graph, 0);
    if (error == CUDA_OK) {
        error = sim_stream_begin(stream, graph);
        if (error != CUDA_OK)
            free(graph);
    }
    return sim_error_result(error);
}

SIM_API int cudaStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies, const void *data,
                                          size_t count, int mode)
{
    return sim_error_result(sim_stream_begin(stream, graph));
}

SIM_API int cudaStreamEndCapture(void *stream, void **graph)
{
    struct sim_graph *ended;
    int error = sim_stream_end(stream, &ended);
    *graph = ended;
    return sim_error_result(error);
}

SIM_API int cudaStreamIsCapturing(void *stream, int *status)
{
    *status = sim_stream_capture(stream) ? CUDA_CAPTURE_ACTIVE : CUDA_CAPTURE_NONE;
    return CUDA_OK;
}

/* CUDA 13's signature. Dependencies are not modelled: there are never any. */
SIM_API int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph,
                                     const void **dependencies, const void **edges, size_t *count)
{
    struct sim_graph *capture = sim_stream_capture(stream);
    *status = capture ? CUDA_CAPTURE_ACTIVE : CUDA_CAPTURE_NONE;
    if (id != NULL && capture != NULL)
        *id = capture->id;
    if (graph != NULL)
        *graph = capture;
    if (dependencies != NULL)
        *dependencies = NULL;
    if (edges != NULL)
        *edges = NULL;
    if (count != NULL)
        *count = 0;
    return CUDA_OK;
}

/* CUDA 12's names for it: _v2 has no edges, _v3 is as above. */
SIM_API int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                                        const void **dependencies, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

SIM_API int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph,
                                        const void **dependencies, const void **edges, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

SIM_API int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int capture_mode; /* 0: cudaStreamCaptureModeGlobal, the default */
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_OK;
}

SIM_API int cudaStreamUpdateCaptureDependencies(void)
{
    return CUDA_OK;
}

SIM_API int cudaStreamUpdateCaptureDependencies_v2(void)
{
    return CUDA_OK;
}

/* ---- graphs ---- */

static void release_object(struct sim_user_object *object, unsigned count)
{
    if (atomic_fetch_sub(&object->references, count) != count)
        return;
    object->destroy(object->data);
    free(object);
}

SIM_API int cudaGraphDestroy(void *handle)
{
    struct sim_graph *graph = handle;
    if (graph == NULL)
        return sim_error_result(CUDA_INVALID_VALUE);
    while (graph->kept != NULL) {
        struct sim_kept *kept = graph->kept;
        graph->kept = kept->next;
        release_object(kept->object, kept->count);
        free(kept);
    }
    free(graph);
    return CUDA_OK;
}

SIM_API int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    *executable = graph ? malloc(1) : NULL;
    return sim_error_result(*executable ? CUDA_OK : CUDA_INVALID_VALUE);
}

SIM_API int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

SIM_API int cudaGraphExecDestroy(void *executable)
{
    free(executable);
    return CUDA_OK;
}

SIM_API int cudaGraphLaunch(void *executable, void *stream)
{
    return sim_error_result(executable ? CUDA_OK : CUDA_INVALID_VALUE);
}

SIM_API int cudaGraphUpload(void *executable, void *stream)
{
    return CUDA_OK;
}

/* With `nodes` NULL it tells how many there are; the handles are only numbers. */
SIM_API int cudaGraphGetNodes(void *handle, void **nodes, size_t *count)
{
    struct sim_graph *graph = handle;
    if (graph == NULL || count == NULL)
        return sim_error_result(CUDA_INVALID_VALUE);
    size_t have = atomic_load(&graph->nodes);
    for (size_t i = 0; nodes != NULL && i < *count; i++)
        nodes[i] = i < have ? (void *)(i + 1) : NULL;
    if (nodes == NULL || *count > have)
        *count = have;
    return CUDA_OK;
}

SIM_API int cudaGraphNodeGetDependencies(void *node, void **dependencies, void *edges, size_t *count)
{
    *count = 0;
    return CUDA_OK;
}

SIM_API int cudaGraphAddNode(void)
{
    return sim_error_result(CUDA_NOT_SUPPORTED);
}

SIM_API int cudaGraphConditionalHandleCreate(void)
{
    return sim_error_result(CUDA_NOT_SUPPORTED);
}

SIM_API int cudaGraphDebugDotPrint(void)
{
    return sim_error_result(CUDA_NOT_SUPPORTED);
}

/* ---- user objects: what a graph keeps alive ---- */

SIM_API int cudaUserObjectCreate(void **object, void *data, void (*destroy)(void *), unsigned references,
                                 unsigned flags)
{
    struct sim_user_object *made = calloc(1, sizeof *made);
    if (made == NULL)
        return sim_error_result(CUDA_OUT_OF_MEMORY);
    made->data = data;
    made->destroy = destroy;
    atomic_store(&made->references, references);
    *object = made;
    return CUDA_OK;
}

SIM_API int cudaUserObjectRelease(void *object, unsigned count)
{
    release_object(object, count);
    return CUDA_OK;
}

SIM_API int cudaGraphRetainUserObject(void *handle, void *object, unsigned count, unsigned flags)
{
    enum { MOVE = 1 }; /* cudaGraphUserObjectMove: the caller's references become the graph's */
    struct sim_graph *graph = handle;
    struct sim_user_object *retained = object;
    struct sim_kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL)
        return sim_error_result(CUDA_OUT_OF_MEMORY);
    if (!(flags & MOVE))
        atomic_fetch_add(&retained->references, count);
    *kept = (struct sim_kept){.next = graph->kept, .object = retained, .count = count};
    graph->kept = kept;
    return CUDA_OK;
}
