/* The part of the CUDA ABI that PyTorch's CUDA builds call, declared from scratch.
 *
 * Purpose: lets simcuda be built without a CUDA toolkit. Numbers and layouts are those of NVIDIA's public
 *   headers, compared with nvidia-cuda-runtime 13.0 (cudart 13) and nvidia-cuda-runtime-cu12 12.8.90 (cudart 12):
 *   driver_types.h (structs, enums), cuda_runtime_api.h (prototypes), crt/host_runtime.h (registration), cuda.h
 *   (driver). The static assertions at the end hold the offsets and sizes those headers give on LP64 Linux,
 *   x86-64 and AArch64 alike.
 * Ownership, threads, locks: none, declarations only.
 */
#ifndef SIM_CUDA_ABI_H
#define SIM_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define SIM_API __attribute__((visibility("default")))

/* cudaError_t and CUresult share these numbers where both have the error. */
enum cuda_error {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_INVALID_CONFIGURATION = 9,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_OPERATING_SYSTEM = 304,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_PEER_ALREADY_ENABLED = 704,
    CUDA_PEER_NOT_ENABLED = 705,
    CUDA_HOST_ALREADY_REGISTERED = 712,
    CUDA_HOST_NOT_REGISTERED = 713,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_CAPTURE_INVALIDATED = 901,
    CUDA_CAPTURE_UNMATCHED = 903,
    CUDA_CAPTURE_IMPLICIT = 906,
};

enum cuda_memory_type { CUDA_MEMORY_UNREGISTERED = 0, CUDA_MEMORY_HOST = 1, CUDA_MEMORY_DEVICE = 2 };
enum cuda_capture_status { CUDA_CAPTURE_NONE = 0, CUDA_CAPTURE_ACTIVE = 1 };
enum cuda_entry_point { CUDA_ENTRY_FOUND = 0, CUDA_ENTRY_NOT_FOUND = 1 };
enum { CUDA_EVENT_DISABLE_TIMING = 2 };

struct cuda_dim3 {
    unsigned x, y, z;
};

/* struct cudaPointerAttributes. CUDA 13 appended reserved[8], "must be zero"; a CUDA 12 caller has the first
 * 24 bytes only, so the tail may be written for a CUDA 13 caller alone. */
struct cuda_pointer_attributes {
    int32_t type;
    int32_t device;
    void *device_pointer;
    void *host_pointer;
};

/* struct cudaFuncAttributes: the fields up to nonPortableClusterSizeAllowed, then reserved[16]; same in 12 and 13. */
struct cuda_func_attributes {
    size_t shared_size, const_size, local_size;
    int max_threads_per_block, registers, ptx_version, binary_version, cache_mode_ca;
    int max_dynamic_shared_size, preferred_carveout;
    int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, nonportable_cluster;
    int reserved[16];
};

/* cudaLaunchConfig_t */
struct cuda_launch_config {
    struct cuda_dim3 grid, block;
    size_t dynamic_shared;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

/* CUlaunchConfig */
struct cuda_driver_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned dynamic_shared;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

enum { CUDA_TENSOR_MAP_SIZE = 128 }; /* sizeof(CUtensorMap) */

/* enum cudaLimit, CUlimit */
enum cuda_limit {
    CUDA_LIMIT_STACK_SIZE = 0,
    CUDA_LIMIT_PRINTF_FIFO_SIZE = 1,
    CUDA_LIMIT_MALLOC_HEAP_SIZE = 2,
    CUDA_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
    CUDA_LIMIT_DEV_RUNTIME_PENDING_LAUNCHES = 4,
    CUDA_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
    CUDA_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
    CUDA_LIMITS = 7,
};

/* struct cudaDeviceProp. The macros hold what the two versions share, in order. */
#define CUDA_PROP_HEAD \
    char name[256]; \
    unsigned char uuid[16]; \
    char luid[8]; \
    unsigned luidDeviceNodeMask; \
    size_t totalGlobalMem, sharedMemPerBlock; \
    int regsPerBlock, warpSize; \
    size_t memPitch; \
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#define CUDA_PROP_TEXTURES \
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], \
        maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3], \
        maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], \
        maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2]; \
    size_t surfaceAlignment; \
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, \
        unifiedAddressing;
#define CUDA_PROP_CACHES \
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported, \
        globalL1CacheSupported, localL1CacheSupported; \
    size_t sharedMemPerMultiprocessor; \
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
#define CUDA_PROP_TAIL \
    size_t sharedMemPerBlockOptin; \
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor, \
        accessPolicyMaxWindowSize; \
    size_t reservedSharedMemPerBlock; \
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported, \
        timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported; \
    unsigned gpuDirectRDMAFlushWritesOptions; \
    int gpuDirectRDMAWritesOrdering; \
    unsigned memoryPoolSupportedHandleTypes; \
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;

/* CUDA 13: cudaGetDeviceProperties. */
struct cuda_device_prop_13 {
    CUDA_PROP_HEAD
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory, maxTexture1D, maxTexture1DMipmap;
    CUDA_PROP_TEXTURES
    CUDA_PROP_CACHES
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        cooperativeLaunch;
    CUDA_PROP_TAIL
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
};

/* CUDA 12: cudaGetDeviceProperties_v2. */
struct cuda_device_prop_12 {
    CUDA_PROP_HEAD
    int clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode,
        maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
    CUDA_PROP_TEXTURES
    int memoryClockRate;
    CUDA_PROP_CACHES
    int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
        canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch;
    CUDA_PROP_TAIL
    int reserved[63];
};

/* cudaDeviceAttr / CUdevice_attribute: the numbers are shared by runtime and driver. */
enum cuda_attribute {
    CUDA_ATTR_MAX_THREADS_PER_BLOCK = 1,
    CUDA_ATTR_MAX_BLOCK_X = 2,
    CUDA_ATTR_MAX_BLOCK_Y = 3,
    CUDA_ATTR_MAX_BLOCK_Z = 4,
    CUDA_ATTR_MAX_GRID_X = 5,
    CUDA_ATTR_MAX_GRID_Y = 6,
    CUDA_ATTR_MAX_GRID_Z = 7,
    CUDA_ATTR_SHARED_PER_BLOCK = 8,
    CUDA_ATTR_TOTAL_CONST = 9,
    CUDA_ATTR_WARP_SIZE = 10,
    CUDA_ATTR_MAX_PITCH = 11,
    CUDA_ATTR_REGISTERS_PER_BLOCK = 12,
    CUDA_ATTR_CLOCK_RATE = 13,
    CUDA_ATTR_TEXTURE_ALIGNMENT = 14,
    CUDA_ATTR_GPU_OVERLAP = 15,
    CUDA_ATTR_SM_COUNT = 16,
    CUDA_ATTR_CAN_MAP_HOST = 19,
    CUDA_ATTR_MAX_TEXTURE_1D = 21,
    CUDA_ATTR_SURFACE_ALIGNMENT = 30,
    CUDA_ATTR_CONCURRENT_KERNELS = 31,
    CUDA_ATTR_ECC = 32,
    CUDA_ATTR_PCI_BUS = 33,
    CUDA_ATTR_PCI_DEVICE = 34,
    CUDA_ATTR_MEMORY_CLOCK = 36,
    CUDA_ATTR_BUS_WIDTH = 37,
    CUDA_ATTR_L2_SIZE = 38,
    CUDA_ATTR_THREADS_PER_SM = 39,
    CUDA_ATTR_ASYNC_ENGINES = 40,
    CUDA_ATTR_UNIFIED_ADDRESSING = 41,
    CUDA_ATTR_PCI_DOMAIN = 50,
    CUDA_ATTR_CAPABILITY_MAJOR = 75,
    CUDA_ATTR_CAPABILITY_MINOR = 76,
    CUDA_ATTR_STREAM_PRIORITIES = 78,
    CUDA_ATTR_GLOBAL_L1 = 79,
    CUDA_ATTR_LOCAL_L1 = 80,
    CUDA_ATTR_SHARED_PER_SM = 81,
    CUDA_ATTR_REGISTERS_PER_SM = 82,
    CUDA_ATTR_COMPUTE_PREEMPTION = 90,
    CUDA_ATTR_COOPERATIVE_LAUNCH = 95,
    CUDA_ATTR_SHARED_PER_BLOCK_OPTIN = 97,
    CUDA_ATTR_HOST_REGISTER = 99,
    CUDA_ATTR_VIRTUAL_MEMORY = 102, /* CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    CUDA_ATTR_BLOCKS_PER_SM = 106,
    CUDA_ATTR_SHARED_RESERVED = 111,
    CUDA_ATTR_MEMORY_POOLS = 115,
    CUDA_ATTR_CLUSTER_LAUNCH = 120,
};

/* cuda.h: CUmemLocation, CUmemAllocationProp, CUmemAccessDesc (v1). */
struct cuda_mem_location {
    int type, id;
};
enum { CUDA_LOCATION_DEVICE = 1 };
struct cuda_mem_allocation_prop {
    int type, handle_types;
    struct cuda_mem_location location;
    void *win32_metadata;
    unsigned char compression, rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
};

/* Sizes and offsets as measured with NVIDIA's own headers (see the file comment). */
#define SIM_CHECK_PROP(type, size, sms, l2, optin, last, reserved_at) \
    _Static_assert(sizeof(type) == (size), #type " size"); \
    _Static_assert(offsetof(type, multiProcessorCount) == (sms), #type " head"); \
    _Static_assert(offsetof(type, l2CacheSize) == (l2), #type " textures"); \
    _Static_assert(offsetof(type, sharedMemPerBlockOptin) == (optin), #type " caches"); \
    _Static_assert(offsetof(type, unifiedFunctionPointers) == (last), #type " tail"); \
    _Static_assert(offsetof(type, reserved) == (reserved_at), #type " reserved")
SIM_CHECK_PROP(struct cuda_device_prop_13, 1008, 384, 596, 672, 752, 784);
SIM_CHECK_PROP(struct cuda_device_prop_12, 1032, 388, 616, 696, 776, 780);
_Static_assert(sizeof(struct cuda_func_attributes) == 144, "cudaFuncAttributes");
_Static_assert(sizeof(struct cuda_launch_config) == 56, "cudaLaunchConfig_t");
_Static_assert(sizeof(struct cuda_driver_launch_config) == 56, "CUlaunchConfig");
_Static_assert(offsetof(struct cuda_driver_launch_config, stream) == 32, "CUlaunchConfig stream");
_Static_assert(sizeof(struct cuda_pointer_attributes) == 24, "cudaPointerAttributes");

#endif
