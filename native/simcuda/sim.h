/* What the files of simcuda share: the device model, the table of address ranges, streams.
 *
 * Purpose: one model, seen through the runtime API (runtime.c, memory.c, copy.c, stream.c, graph.c, launch.c, pool.c),
 *   the driver API (driver.c, vmm.c) and NVML (nvml.c).
 * Ownership: this library owns all simulated memory; a caller owns only the handles it was given.
 * Threads: every function may be called from any thread, with or without the GIL, and while PyTorch's allocator holds
 *   its lock. Locks: the range table's (ranges.c) and the streams' (stream.c); no function calls out of the library
 *   while it holds one of them, and none takes both.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cuda_abi.h"

#define SIM_MAX_DEVICES 8

/* One device's description; the layout is shared with pytorch_memlab_c/simulate.py (ctypes). */
struct sim_spec {
    char name[256];
    uint64_t total_memory; /* bytes */
    int32_t major, minor;  /* compute capability */
    int32_t sm_count;
    int32_t threads_per_sm;
    int32_t shared_per_sm;          /* bytes */
    int32_t shared_per_block_optin; /* bytes */
    int32_t l2_size;                /* bytes */
    int32_t bus_width;              /* bits */
};

/* device.c */
SIM_API int pml_simcuda_configure(const struct sim_spec *spec, int count);
int sim_device_count(void); /* visible devices; 0 before pml_simcuda_configure */
int sim_device_physical_count(void);
int sim_device_physical(int device);
const struct sim_spec *sim_device_spec(void);
int sim_device_current(void);
int sim_device_select(int device);
bool sim_device_active(int device);
int sim_device_reserve(int device, size_t bytes);
void sim_device_release(int device, size_t bytes);
uint64_t sim_device_used(int device);
uint64_t sim_device_peak(int device);
void sim_device_reset_peak(int device);
int sim_device_attribute(int attribute, int device, int *value);
int sim_device_limit(int limit, size_t *value); /* of the current device, as set by a program or its default */
int sim_device_set_limit(int limit, size_t value);
void sim_device_uuid(int device, unsigned char uuid[16]);

/* error.c: the runtime's last error of a thread */
int sim_error_result(int error);
const char *sim_error_name(int error);
const char *sim_error_text(int error);

/* ranges.c */
enum sim_range_kind { SIM_RANGE_DEVICE, SIM_RANGE_HOST, SIM_RANGE_REGISTERED, SIM_RANGE_RESERVED };
struct sim_range {
    uintptr_t base;
    size_t size;
    enum sim_range_kind kind;
    int device;
    _Atomic uint64_t *touched; /* a bit per SIM_CHUNK of device memory that may hold something else than zeros */
};
#define SIM_CHUNK ((size_t)64 << 10) /* a multiple of every page size Linux uses on x86-64 and AArch64 */

int sim_ranges_create(enum sim_range_kind kind, int device, size_t size, size_t alignment, void **base);
int sim_ranges_register(void *base, size_t size, int device);
int sim_ranges_destroy(const void *base, enum sim_range_kind kind, struct sim_range *gone);
bool sim_ranges_lookup(const void *address, struct sim_range *found); /* a copy; `touched` is not for use */
void sim_ranges_assign(const void *address, int device);              /* which device backs a reserved range */
int sim_ranges_copy(void *destination, const void *source, size_t bytes);
int sim_ranges_fill(void *destination, int value, size_t bytes);
void sim_ranges_forget(void *address, size_t bytes); /* contents become zeros again */

/* stream.c and graph.c */
struct sim_graph;
struct sim_stream {
    struct sim_stream *next;
    int device, priority;
    unsigned flags;
    struct sim_graph *capture; /* the graph being captured, or NULL; under the streams' lock */
};
int sim_stream_create(void **stream, unsigned flags, int priority);
int sim_stream_begin(void *stream, struct sim_graph *graph);
int sim_stream_end(void *stream, struct sim_graph **graph);
struct sim_graph *sim_stream_capture(void *stream);
void sim_graph_note_work(void *stream); /* counts work in the graph that the stream captures, if any */

/* vmm.c */
int sim_vmm_find_mapping(uint64_t address, uint64_t *base, size_t *size);

/* driver.c */
void *sim_driver_symbol(const char *name);

#endif
