/* Errors of the simulated runtime: the sticky last error of each thread, names and texts.
 *
 * Ownership: static strings. Threads: any; the last error is thread-local. Locks: none.
 */
#include "sim.h"

static _Thread_local int t_last_error;

/* Every runtime function returns through this: a failure stays until cudaGetLastError. */
int pml_sim_result(int error)
{
    if (error != PML_CUDA_OK)
        t_last_error = error;
    return error;
}

PML_API int cudaGetLastError(void)
{
    int error = t_last_error;
    t_last_error = PML_CUDA_OK;
    return error;
}

PML_API int cudaPeekAtLastError(void) { return t_last_error; }

static const struct {
    int error;
    const char *runtime_name, *driver_name, *text;
} k_errors[] = {
    {PML_CUDA_OK, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {PML_CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {PML_CUDA_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {PML_CUDA_NOT_INITIALIZED, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {PML_CUDA_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "CUDA_ERROR_INVALID_VALUE",
     "invalid configuration argument"},
    {PML_CUDA_NO_DEVICE, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {PML_CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {PML_CUDA_INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {PML_CUDA_OPERATING_SYSTEM, "cudaErrorOperatingSystem", "CUDA_ERROR_OPERATING_SYSTEM",
     "the host refused address space for the simulated GPU (see ulimit -v and vm.overcommit_memory)"},
    {PML_CUDA_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {PML_CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {PML_CUDA_NOT_READY, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {PML_CUDA_PEER_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {PML_CUDA_PEER_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {PML_CUDA_HOST_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered",
     "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
    {PML_CUDA_HOST_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {PML_CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED",
     "operation not supported (by the simulated GPU)"},
    {PML_CUDA_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {PML_CUDA_CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {PML_CUDA_CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

static int find_error(int error)
{
    for (int i = 0; i < (int)(sizeof k_errors / sizeof k_errors[0]); i++)
        if (k_errors[i].error == error)
            return i;
    return -1;
}

const char *pml_sim_error_name(int error)
{
    int at = find_error(error);
    return at < 0 ? NULL : k_errors[at].driver_name;
}

const char *pml_sim_error_text(int error)
{
    int at = find_error(error);
    return at < 0 ? NULL : k_errors[at].text;
}

PML_API const char *cudaGetErrorName(int error)
{
    int at = find_error(error);
    return at < 0 ? "unrecognized error code" : k_errors[at].runtime_name;
}

PML_API const char *cudaGetErrorString(int error)
{
    int at = find_error(error);
    return at < 0 ? "unrecognized error code" : k_errors[at].text;
}
