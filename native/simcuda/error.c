/* Errors of the simulated runtime: the sticky last error of each thread, names and texts.
 *
 * Ownership: static strings. Threads: any; the last error is thread-local. Locks: none.
 */
#include "sim.h"

static _Thread_local int last_error;

/* Every runtime function returns through this: a failure stays until cudaGetLastError. */
int sim_error_result(int error)
{
    if (error != CUDA_OK)
        last_error = error;
    return error;
}

SIM_API int cudaGetLastError(void)
{
    int error = last_error;
    last_error = CUDA_OK;
    return error;
}

SIM_API int cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    int error;
    const char *runtime_name, *driver_name, *text;
} errors[] = {
    {CUDA_OK, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NOT_INITIALIZED, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "CUDA_ERROR_INVALID_VALUE",
     "invalid configuration argument"},
    {CUDA_NO_DEVICE, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_OPERATING_SYSTEM, "cudaErrorOperatingSystem", "CUDA_ERROR_OPERATING_SYSTEM",
     "the host refused address space for the simulated GPU (see ulimit -v and vm.overcommit_memory)"},
    {CUDA_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_NOT_READY, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_PEER_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {CUDA_PEER_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {CUDA_HOST_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_HOST_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED",
     "operation not supported (by the simulated GPU)"},
    {CUDA_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {CUDA_CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

static int find_error(int error)
{
    for (int i = 0; i < (int)(sizeof errors / sizeof errors[0]); i++)
        if (errors[i].error == error)
            return i;
    return -1;
}

const char *sim_error_name(int error)
{
    int at = find_error(error);
    return at < 0 ? NULL : errors[at].driver_name;
}

const char *sim_error_text(int error)
{
    int at = find_error(error);
    return at < 0 ? NULL : errors[at].text;
}

SIM_API const char *cudaGetErrorName(int error)
{
    int at = find_error(error);
    return at < 0 ? "unrecognized error code" : errors[at].runtime_name;
}

SIM_API const char *cudaGetErrorString(int error)
{
    int at = find_error(error);
    return at < 0 ? "unrecognized error code" : errors[at].text;
}
