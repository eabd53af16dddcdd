/* A library with nothing but a file name and a soname: libcuda.so.1 or libnvidia-ml.so.1.
 *
 * Purpose: programs open the driver and NVML by these names, and Triton links what it compiles to the file
 * libcuda.so.1. The library depends on libpml_simcudart.so, where all functions are, so that all APIs share one state.
 * Ownership, threads, locks: none.
 */
__attribute__((visibility("default"))) const char *sim_soname_stub(void)
{
    return "pytorch_memlab_c simulated GPU";
}
