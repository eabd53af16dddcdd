/* A library that only bears a name: libcuda.so.1 or libnvidia-ml.so.1.
 *
 * Purpose: libraries open the driver and NVML by these names. Whoever opens this one finds every function in
 *   libpml_simcudart.so, which it depends on; so there is one copy of the state behind all the APIs.
 * Ownership, threads, locks: none.
 */
__attribute__((visibility("default"))) const char *pml_simcuda_shell(void) { return "pytorch_memlab_c simulated GPU"; }
