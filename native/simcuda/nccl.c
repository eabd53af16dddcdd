/* NCCL: collectives without communication.
 *
 * Purpose: DistributedDataParallel and FSDP scripts with the "nccl" backend run and allocate as on hardware. Ranks do
 * not exchange anything and do not wait for each other: each behaves as if all the others held the same data as it
 * does. That is what PyTorch's checks of equal shapes across ranks need, and values mean nothing here anyway. NCCL's
 * own device memory is outside PyTorch's allocator and is not simulated. Ownership: a communicator belongs to its
 * creator. Threads: any, one communicator by one thread at a time, as in NCCL. Locks: those inside ranges.c and
 * stream.c.
 */
#include "outputs.h"
#include "sim.h"

#include <string.h>

enum nccl_result { OK = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

struct nccl_unique_id {
    char internal[128];
};
struct sim_communicator {
    int ranks, rank, device;
};

/* Bytes of the values of ncclDataType_t, in order. */
static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

static size_t bytes_of(size_t count, unsigned type)
{
    return type < sizeof sizes ? count * sizes[type] : 0;
}

/* ---- communicators ---- */

static int create(void **communicator, int ranks, int rank, int device)
{
    struct sim_communicator *made = ranks > 0 && rank >= 0 && rank < ranks ? malloc(sizeof *made) : NULL;
    *communicator = made;
    if (made == NULL)
        return INVALID_ARGUMENT;
    *made = (struct sim_communicator){ranks, rank, device};
    return OK;
}

SIM_API int ncclGetUniqueId(struct nccl_unique_id *id)
{
    memset(id, 0, sizeof *id);
    return OK;
}

SIM_API int ncclCommInitRank(void **communicator, int ranks, struct nccl_unique_id id, int rank)
{
    return create(communicator, ranks, rank, sim_device_current());
}

SIM_API int ncclCommInitRankConfig(void **communicator, int ranks, struct nccl_unique_id id, int rank, void *config)
{
    return create(communicator, ranks, rank, sim_device_current());
}

SIM_API int ncclCommInitRankScalable(void **communicator, int ranks, int rank, int ids, struct nccl_unique_id *id,
                                     void *config)
{
    return create(communicator, ranks, rank, sim_device_current());
}

SIM_API int ncclCommInitAll(void **communicators, int count, const int *devices)
{
    int error = OK;
    for (int i = 0; i < count && error == OK; i++)
        error = create(&communicators[i], count, i, devices ? devices[i] : i);
    return error;
}

SIM_API int ncclCommCount(const void *communicator, int *ranks)
{
    *ranks = ((const struct sim_communicator *)communicator)->ranks;
    return OK;
}

SIM_API int ncclCommUserRank(const void *communicator, int *rank)
{
    *rank = ((const struct sim_communicator *)communicator)->rank;
    return OK;
}

SIM_API int ncclCommCuDevice(const void *communicator, int *device)
{
    *device = ((const struct sim_communicator *)communicator)->device;
    return OK;
}

SIM_API int ncclCommGetAsyncError(void *communicator, int *error)
{
    *error = OK;
    return OK;
}

SIM_API const char *ncclGetLastError(void *communicator)
{
    return "not supported by the simulated GPU";
}

SIM_DESTROY(ncclCommDestroy)
SIM_DESTROY(ncclCommAbort)
SIM_NOTHING(ncclCommFinalize)
SIM_NOTHING(ncclGroupStart)
SIM_NOTHING(ncclGroupEnd)

SIM_API int ncclCommRegister(void *communicator, void *buffer, size_t size, void **handle)
{
    *handle = buffer;
    return OK;
}

SIM_NOTHING(ncclCommDeregister)

/* The first number that is not one of NCCL's own operations. */
SIM_API int ncclRedOpCreatePreMulSum(int *operation)
{
    *operation = 5;
    return OK;
}

SIM_NOTHING(ncclRedOpDestroy)

/* ---- collectives ---- */

static int copy(void *to, const void *from, size_t bytes, void *stream)
{
    sim_graph_note_work(stream);
    return sim_ranges_copy(to, from, bytes) == CUDA_OK ? OK : INVALID_ARGUMENT;
}

SIM_API int ncclAllReduce(const void *from, void *to, size_t count, unsigned type, int operation, void *communicator,
                          void *stream)
{
    return copy(to, from, bytes_of(count, type), stream);
}

SIM_API int ncclReduce(const void *from, void *to, size_t count, unsigned type, int operation, int root,
                       void *communicator, void *stream)
{
    bool receives = ((struct sim_communicator *)communicator)->rank == root;
    return receives ? copy(to, from, bytes_of(count, type), stream) : OK;
}

SIM_API int ncclBroadcast(const void *from, void *to, size_t count, unsigned type, int root, void *communicator,
                          void *stream)
{
    return copy(to, from, bytes_of(count, type), stream);
}

SIM_API int ncclAllGather(const void *from, void *to, size_t count, unsigned type, void *communicator, void *stream)
{
    size_t bytes = bytes_of(count, type);
    int error = OK;
    for (int rank = 0; rank < ((struct sim_communicator *)communicator)->ranks && error == OK; rank++)
        error = copy((char *)to + (size_t)rank * bytes, from, bytes, stream);
    return error;
}

SIM_API int ncclReduceScatter(const void *from, void *to, size_t count, unsigned type, int operation,
                              void *communicator, void *stream)
{
    size_t bytes = bytes_of(count, type);
    return copy(to, (const char *)from + (size_t)((struct sim_communicator *)communicator)->rank * bytes, bytes,
                stream);
}

/* What the others would send is unknown: the receiver keeps what it has. */
SIM_NOTHING(ncclSend)
SIM_NOTHING(ncclRecv)
SIM_NOTHING(ncclBcast)
SIM_NOTHING(ncclAlltoAll)
SIM_NOTHING(ncclGather)
SIM_NOTHING(ncclScatter)

/* ---- memory for zero-copy collectives ---- */

SIM_API int cudaMalloc(void **pointer, size_t size);
SIM_API int cudaFree(void *pointer);

SIM_API int ncclMemAlloc(void **pointer, size_t size)
{
    return cudaMalloc(pointer, size) == CUDA_OK ? OK : SYSTEM_ERROR;
}

SIM_API int ncclMemFree(void *pointer)
{
    return cudaFree(pointer) == CUDA_OK ? OK : INVALID_ARGUMENT;
}

/* ---- not simulated: communicators whose size only communication would tell, windows, device-side use ---- */

#define NOT_SUPPORTED(name) \
    SIM_API int name(void) \
    { \
        return INVALID_USAGE; \
    }
NOT_SUPPORTED(ncclCommSplit)
NOT_SUPPORTED(ncclCommShrink)
NOT_SUPPORTED(ncclCommGrow)
NOT_SUPPORTED(ncclCommSuspend)
NOT_SUPPORTED(ncclCommResume)
NOT_SUPPORTED(ncclCommRevoke)
NOT_SUPPORTED(ncclCommMemStats)
NOT_SUPPORTED(ncclCommGetUniqueId)
NOT_SUPPORTED(ncclCommWindowRegister)
NOT_SUPPORTED(ncclCommWindowDeregister)
NOT_SUPPORTED(ncclDevCommCreate)
NOT_SUPPORTED(ncclDevCommDestroy)
NOT_SUPPORTED(ncclGetLsaMultimemDevicePointer)
NOT_SUPPORTED(ncclGetPeerDevicePointer)
NOT_SUPPORTED(ncclWinGetUserPtr)
NOT_SUPPORTED(ncclGroupSimulateEnd)
NOT_SUPPORTED(ncclPutSignal)
NOT_SUPPORTED(ncclSignal)
NOT_SUPPORTED(ncclWaitSignal)
