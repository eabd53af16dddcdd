/* Runtime API: stream capture and graphs.
 *
 * Purpose: enough of graphs that torch.cuda.graph captures and replays: the private pool it allocates from is PyTorch's own.
 *   A graph only counts the work enqueued into it; launching it does nothing, like any kernel.
 * Ownership: a graph and its executable are freed by their destroy functions; user objects kept by a graph are released
 *   with it. Threads: any. Locks: none of its own (a graph is changed by the thread that captures or destroys it, as CUDA
 *   requires; its work counter is an atomic); stream.c's for the marks on streams.
 */
#include "sim.h"

#include <stdlib.h>

typedef struct pml_user_object {
    struct pml_user_object *next; /* in the graph that retains it */
    void *data;
    void (*destroy)(void *);
    _Atomic unsigned references;
} pml_user_object;

typedef struct pml_kept {
    struct pml_kept *next;
    pml_user_object *object;
    unsigned count;
} pml_kept;

struct pml_graph {
    unsigned long long id;
    _Atomic size_t nodes;
    pml_kept *kept;
};

static _Atomic unsigned long long g_next_id = 1;

void pml_sim_graph_note_work(void *stream)
{
    pml_graph *graph = pml_sim_stream_capture(stream);
    if (graph != NULL)
        atomic_fetch_add(&graph->nodes, 1);
}

PML_API int cudaGraphCreate(void **graph, unsigned flags)
{
    pml_graph *made = calloc(1, sizeof *made);
    if (made == NULL)
        return pml_sim_result(PML_CUDA_OUT_OF_MEMORY);
    made->id = atomic_fetch_add(&g_next_id, 1);
    *graph = made;
    return PML_CUDA_OK;
}

/* ---- capture ---- */

PML_API int cudaStreamBeginCapture(void *stream, int mode)
{
    void *graph;
    int error = cudaGraphCreate(&graph, 0);
    if (error == PML_CUDA_OK) {
        error = pml_sim_stream_begin(stream, graph);
        if (error != PML_CUDA_OK)
            free(graph);
    }
    return pml_sim_result(error);
}

PML_API int cudaStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies, const void *data,
                                          size_t count, int mode)
{
    return pml_sim_result(pml_sim_stream_begin(stream, graph));
}

PML_API int cudaStreamEndCapture(void *stream, void **graph)
{
    pml_graph *ended;
    int error = pml_sim_stream_end(stream, &ended);
    *graph = ended;
    return pml_sim_result(error);
}

PML_API int cudaStreamIsCapturing(void *stream, int *status)
{
    *status = pml_sim_stream_capture(stream) ? PML_CAPTURE_ACTIVE : PML_CAPTURE_NONE;
    return PML_CUDA_OK;
}

/* CUDA 13's signature. Dependencies are not modelled: there are never any. */
PML_API int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph,
                                     const void **dependencies, const void **edges, size_t *count)
{
    pml_graph *capture = pml_sim_stream_capture(stream);
    *status = capture ? PML_CAPTURE_ACTIVE : PML_CAPTURE_NONE;
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
    return PML_CUDA_OK;
}

/* CUDA 12's names for it: _v2 has no edges, _v3 is as above. */
PML_API int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                                        const void **dependencies, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

PML_API int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph,
                                        const void **dependencies, const void **edges, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

PML_API int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int t_mode; /* 0: cudaStreamCaptureModeGlobal, the default */
    int before = t_mode;
    t_mode = *mode;
    *mode = before;
    return PML_CUDA_OK;
}

PML_API int cudaStreamUpdateCaptureDependencies(void) { return PML_CUDA_OK; }
PML_API int cudaStreamUpdateCaptureDependencies_v2(void) { return PML_CUDA_OK; }

/* ---- graphs ---- */

static void release_object(pml_user_object *object, unsigned count)
{
    if (atomic_fetch_sub(&object->references, count) != count)
        return;
    object->destroy(object->data);
    free(object);
}

PML_API int cudaGraphDestroy(void *handle)
{
    pml_graph *graph = handle;
    if (graph == NULL)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    while (graph->kept != NULL) {
        pml_kept *kept = graph->kept;
        graph->kept = kept->next;
        release_object(kept->object, kept->count);
        free(kept);
    }
    free(graph);
    return PML_CUDA_OK;
}

PML_API int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    *executable = graph ? malloc(1) : NULL;
    return pml_sim_result(*executable ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE);
}

PML_API int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

PML_API int cudaGraphExecDestroy(void *executable)
{
    free(executable);
    return PML_CUDA_OK;
}

PML_API int cudaGraphLaunch(void *executable, void *stream)
{
    return pml_sim_result(executable ? PML_CUDA_OK : PML_CUDA_INVALID_VALUE);
}

PML_API int cudaGraphUpload(void *executable, void *stream) { return PML_CUDA_OK; }

/* With `nodes` NULL it tells how many there are; the handles are only numbers. */
PML_API int cudaGraphGetNodes(void *handle, void **nodes, size_t *count)
{
    pml_graph *graph = handle;
    if (graph == NULL || count == NULL)
        return pml_sim_result(PML_CUDA_INVALID_VALUE);
    size_t have = atomic_load(&graph->nodes);
    for (size_t i = 0; nodes != NULL && i < *count; i++)
        nodes[i] = i < have ? (void *)(i + 1) : NULL;
    if (nodes == NULL || *count > have)
        *count = have;
    return PML_CUDA_OK;
}

PML_API int cudaGraphNodeGetDependencies(void *node, void **dependencies, void *edges, size_t *count)
{
    *count = 0;
    return PML_CUDA_OK;
}

PML_API int cudaGraphAddNode(void) { return pml_sim_result(PML_CUDA_NOT_SUPPORTED); }
PML_API int cudaGraphConditionalHandleCreate(void) { return pml_sim_result(PML_CUDA_NOT_SUPPORTED); }
PML_API int cudaGraphDebugDotPrint(void) { return pml_sim_result(PML_CUDA_NOT_SUPPORTED); }

/* ---- user objects: what a graph keeps alive ---- */

PML_API int cudaUserObjectCreate(void **object, void *data, void (*destroy)(void *), unsigned references,
                                 unsigned flags)
{
    pml_user_object *made = calloc(1, sizeof *made);
    if (made == NULL)
        return pml_sim_result(PML_CUDA_OUT_OF_MEMORY);
    made->data = data;
    made->destroy = destroy;
    atomic_store(&made->references, references);
    *object = made;
    return PML_CUDA_OK;
}

PML_API int cudaUserObjectRelease(void *object, unsigned count)
{
    release_object(object, count);
    return PML_CUDA_OK;
}

PML_API int cudaGraphRetainUserObject(void *handle, void *object, unsigned count, unsigned flags)
{
    enum { MOVE = 1 }; /* cudaGraphUserObjectMove: the caller's references become the graph's */
    pml_graph *graph = handle;
    pml_user_object *retained = object;
    pml_kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL)
        return pml_sim_result(PML_CUDA_OUT_OF_MEMORY);
    if (!(flags & MOVE))
        atomic_fetch_add(&retained->references, count);
    *kept = (pml_kept){.next = graph->kept, .object = retained, .count = count};
    graph->kept = kept;
    return PML_CUDA_OK;
}
