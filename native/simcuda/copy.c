/* Runtime API: copies and fills. All are done at once: the simulated device is never behind the host.
 *
 * Ownership: none. Threads: any. Locks: only inside ranges.c and stream.c, one after the other.
 */
#include "sim.h"

SIM_API int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return sim_error_result(sim_ranges_copy(to, from, bytes));
}

SIM_API int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    sim_graph_note_work(stream);
    return sim_error_result(sim_ranges_copy(to, from, bytes));
}

SIM_API int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return sim_error_result(sim_ranges_copy(to, from, bytes));
}

SIM_API int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream)
{
    sim_graph_note_work(stream);
    return sim_error_result(sim_ranges_copy(to, from, bytes));
}

SIM_API int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, int kind, void *stream)
{
    int error = CUDA_OK;
    if (width > to_pitch || width > from_pitch)
        return sim_error_result(CUDA_INVALID_VALUE);
    sim_graph_note_work(stream);
    for (size_t row = 0; row < height && error == CUDA_OK; row++)
        error = sim_ranges_copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return sim_error_result(error);
}

SIM_API int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         int kind)
{
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

SIM_API int cudaMemset(void *to, int value, size_t bytes)
{
    return sim_error_result(sim_ranges_fill(to, value, bytes));
}

SIM_API int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
    sim_graph_note_work(stream);
    return sim_error_result(sim_ranges_fill(to, value, bytes));
}

/* Device variables have no storage here: no kernel reads them. */
SIM_API int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    return CUDA_OK;
}

SIM_API int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind,
                                    void *stream)
{
    return CUDA_OK;
}

/* The host's shadow of a device variable has its size, so its address serves as the variable's. */
SIM_API int cudaGetSymbolAddress(void **address, const void *symbol)
{
    *address = (void *)symbol;
    return CUDA_OK;
}
