/* What the files of simcuda share: the device model, the table of address ranges, streams.
 *
 * Purpose: one model, seen through the runtime API (runtime.c, memory.c, copy.c, stream.c, graph.c, launch.c, pool.c),
 *   the driver API (driver.c, vmm.c) and NVML (nvml.c).
 * Ownership: this library owns all simulated memory; a caller owns only the handles it was given.
 * Threads: every function may be called from any thread, with or without the GIL, and while PyTorch's allocator holds
 *   its lock. Locks: the range table's (ranges.c) and the streams' (stream.c); no function calls out of the library
 *   while it holds one of them, and none takes both.
 */
#ifndef PML_SIMCUDA_SIM_H
#define PML_SIMCUDA_SIM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cuda_abi.h"

#define PML_MAX_DEVICES 8

/* One device's description; the layout is shared with pytorch_memlab_c/simulate.py (ctypes). */
typedef struct {
    char name[256];
    uint64_t total_memory; /* bytes */
    int32_t major, minor;  /* compute capability */
    int32_t sm_count;
    int32_t threads_per_sm;
    int32_t shared_per_sm;          /* bytes */
    int32_t shared_per_block_optin; /* bytes */
    int32_t l2_size;                /* bytes */
    int32_t bus_width;              /* bits */
} pml_sim_spec;

/* device.c */
PML_API int pml_simcuda_configure(const pml_sim_spec *spec, int count);
int pml_sim_device_count(void); /* visible devices; 0 before pml_simcuda_configure */
int pml_sim_physical_count(void);
int pml_sim_device_physical(int device);
const pml_sim_spec *pml_sim_device_spec(void);
int pml_sim_device_current(void);
int pml_sim_device_select(int device);
bool pml_sim_device_active(int device);
int pml_sim_device_reserve(int device, size_t bytes);
void pml_sim_device_release(int device, size_t bytes);
uint64_t pml_sim_device_used(int device);
uint64_t pml_sim_device_peak(int device);
void pml_sim_device_reset_peak(int device);
int pml_sim_device_attribute(int attribute, int device, int *value);
int pml_sim_device_limit(int limit, size_t *value); /* of the current device, as set by a program or its default */
int pml_sim_device_set_limit(int limit, size_t value);
void pml_sim_device_uuid(int device, unsigned char uuid[16]);

/* error.c: the runtime's last error of a thread */
int pml_sim_result(int error);
const char *pml_sim_error_name(int error);
const char *pml_sim_error_text(int error);

/* ranges.c */
enum pml_range_kind { PML_RANGE_DEVICE, PML_RANGE_HOST, PML_RANGE_REGISTERED, PML_RANGE_RESERVED };
typedef struct {
    uintptr_t base;
    size_t size;
    enum pml_range_kind kind;
    int device;
    _Atomic uint64_t *touched; /* a bit per PML_CHUNK of device memory that may hold something else than zeros */
} pml_range;
#define PML_CHUNK ((size_t)64 << 10) /* a multiple of every page size Linux uses on x86-64 and AArch64 */

int pml_range_create(enum pml_range_kind kind, int device, size_t size, size_t alignment, void **base);
int pml_range_register(void *base, size_t size, int device);
int pml_range_destroy(const void *base, enum pml_range_kind kind, pml_range *gone);
bool pml_range_lookup(const void *address, pml_range *found); /* a copy; `touched` is not for use */
void pml_range_assign(const void *address, int device);       /* which device backs a reserved range */
int pml_range_copy(void *destination, const void *source, size_t bytes);
int pml_range_fill(void *destination, int value, size_t bytes);
void pml_range_forget(void *address, size_t bytes); /* contents become zeros again */

/* stream.c and graph.c */
typedef struct pml_graph pml_graph;
typedef struct pml_stream {
    struct pml_stream *next;
    int device, priority;
    unsigned flags;
    pml_graph *capture; /* the graph being captured, or NULL; under the streams' lock */
} pml_stream;
int pml_sim_stream_create(void **stream, unsigned flags, int priority);
int pml_sim_stream_begin(void *stream, pml_graph *graph);
int pml_sim_stream_end(void *stream, pml_graph **graph);
pml_graph *pml_sim_stream_capture(void *stream);
void pml_sim_graph_note_work(void *stream); /* counts work in the graph that the stream captures, if any */

/* vmm.c */
int pml_sim_mapping_find(uint64_t address, uint64_t *base, size_t *size);

/* driver.c */
void *pml_sim_driver_symbol(const char *name);

#endif
