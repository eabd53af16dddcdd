/* The part of the CUDA ABI that PyTorch's CUDA builds call, declared from scratch.
 *
 * Purpose: lets simcuda be built without a CUDA toolkit. Numbers and layouts are those of NVIDIA's public
 *   headers, compared with nvidia-cuda-runtime 13.0 (cudart 13) and nvidia-cuda-runtime-cu12 12.8.90 (cudart 12):
 *   driver_types.h (structs, enums), cuda_runtime_api.h (prototypes), crt/host_runtime.h (registration), cuda.h
 *   (driver). The static assertions at the end hold the offsets and sizes those headers give on LP64 Linux,
 *   x86-64 and AArch64 alike.
 * Ownership, threads, locks: none, declarations only.
 */
#ifndef PML_SIMCUDA_CUDA_ABI_H
#define PML_SIMCUDA_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define PML_API __attribute__((visibility("default")))

/* cudaError_t and CUresult share these numbers where both have the error. */
enum pml_cuda_error {
    PML_CUDA_OK = 0,
    PML_CUDA_INVALID_VALUE = 1,
    PML_CUDA_OUT_OF_MEMORY = 2,
    PML_CUDA_NOT_INITIALIZED = 3,
    PML_CUDA_INVALID_CONFIGURATION = 9,
    PML_CUDA_NO_DEVICE = 100,
    PML_CUDA_INVALID_DEVICE = 101,
    PML_CUDA_INVALID_CONTEXT = 201,
    PML_CUDA_OPERATING_SYSTEM = 304,
    PML_CUDA_INVALID_HANDLE = 400,
    PML_CUDA_NOT_FOUND = 500,
    PML_CUDA_NOT_READY = 600,
    PML_CUDA_PEER_ALREADY_ENABLED = 704,
    PML_CUDA_PEER_NOT_ENABLED = 705,
    PML_CUDA_HOST_ALREADY_REGISTERED = 712,
    PML_CUDA_HOST_NOT_REGISTERED = 713,
    PML_CUDA_NOT_SUPPORTED = 801,
    PML_CUDA_CAPTURE_INVALIDATED = 901,
    PML_CUDA_CAPTURE_UNMATCHED = 903,
    PML_CUDA_CAPTURE_IMPLICIT = 906,
};

enum pml_cuda_memory_type { PML_MEMORY_UNREGISTERED = 0, PML_MEMORY_HOST = 1, PML_MEMORY_DEVICE = 2 };
enum pml_cuda_capture_status { PML_CAPTURE_NONE = 0, PML_CAPTURE_ACTIVE = 1 };
enum pml_cuda_entry_point { PML_ENTRY_FOUND = 0, PML_ENTRY_NOT_FOUND = 1 };
enum { PML_EVENT_DISABLE_TIMING = 2 };

typedef struct {
    unsigned x, y, z;
} pml_dim3;

/* struct cudaPointerAttributes. CUDA 13 appended reserved[8], "must be zero"; a CUDA 12 caller has the first
 * 24 bytes only, so the tail may be written for a CUDA 13 caller alone. */
typedef struct {
    int32_t type;
    int32_t device;
    void *device_pointer;
    void *host_pointer;
} pml_pointer_attributes;

/* struct cudaFuncAttributes: the fields up to nonPortableClusterSizeAllowed, then reserved[16]; same in 12 and 13. */
typedef struct {
    size_t shared_size, const_size, local_size;
    int max_threads_per_block, registers, ptx_version, binary_version, cache_mode_ca;
    int max_dynamic_shared_size, preferred_carveout;
    int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, nonportable_cluster;
    int reserved[16];
} pml_func_attributes;

/* cudaLaunchConfig_t */
typedef struct {
    pml_dim3 grid, block;
    size_t dynamic_shared;
    void *stream;
    void *attributes;
    unsigned attribute_count;
} pml_launch_config;

/* CUlaunchConfig */
typedef struct {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned dynamic_shared;
    void *stream;
    void *attributes;
    unsigned attribute_count;
} pml_driver_launch_config;

enum { PML_TENSOR_MAP_SIZE = 128 }; /* sizeof(CUtensorMap) */

/* enum cudaLimit, CUlimit */
enum pml_cuda_limit {
    PML_LIMIT_STACK_SIZE = 0,
    PML_LIMIT_PRINTF_FIFO_SIZE = 1,
    PML_LIMIT_MALLOC_HEAP_SIZE = 2,
    PML_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
    PML_LIMIT_DEV_RUNTIME_PENDING_LAUNCHES = 4,
    PML_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
    PML_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
    PML_LIMITS = 7,
};

/* struct cudaDeviceProp. The macros hold what the two versions share, in order. */
#define PML_PROP_HEAD                         \
    char name[256];                           \
    unsigned char uuid[16];                   \
    char luid[8];                             \
    unsigned luidDeviceNodeMask;              \
    size_t totalGlobalMem, sharedMemPerBlock; \
    int regsPerBlock, warpSize;               \
    size_t memPitch;                          \
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#define PML_PROP_TEXTURES                                                                                      \
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], \
        maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3],                 \
        maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2],   \
        maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];                                \
    size_t surfaceAlignment;                                                                                   \
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount,        \
        unifiedAddressing;
#define PML_PROP_CACHES                                                                                                \
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported, \
        globalL1CacheSupported, localL1CacheSupported;                                                                 \
    size_t sharedMemPerMultiprocessor;                                                                                 \
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
#define PML_PROP_TAIL                                                                                       \
    size_t sharedMemPerBlockOptin;                                                                          \
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor, \
        accessPolicyMaxWindowSize;                                                                          \
    size_t reservedSharedMemPerBlock;                                                                       \
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported,                     \
        timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;                    \
    unsigned gpuDirectRDMAFlushWritesOptions;                                                               \
    int gpuDirectRDMAWritesOrdering;                                                                        \
    unsigned memoryPoolSupportedHandleTypes;                                                                \
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;

/* CUDA 13: cudaGetDeviceProperties. */
typedef struct {
    PML_PROP_HEAD
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory, maxTexture1D, maxTexture1DMipmap;
    PML_PROP_TEXTURES
    PML_PROP_CACHES
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        cooperativeLaunch;
    PML_PROP_TAIL
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
} pml_device_prop_13;

/* CUDA 12: cudaGetDeviceProperties_v2. */
typedef struct {
    PML_PROP_HEAD
    int clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode,
        maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
    PML_PROP_TEXTURES
    int memoryClockRate;
    PML_PROP_CACHES
    int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
        canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch;
    PML_PROP_TAIL
    int reserved[63];
} pml_device_prop_12;

/* cudaDeviceAttr / CUdevice_attribute: the numbers are shared by runtime and driver. */
enum pml_cuda_attribute {
    PML_ATTR_MAX_THREADS_PER_BLOCK = 1,
    PML_ATTR_MAX_BLOCK_X = 2,
    PML_ATTR_MAX_BLOCK_Y = 3,
    PML_ATTR_MAX_BLOCK_Z = 4,
    PML_ATTR_MAX_GRID_X = 5,
    PML_ATTR_MAX_GRID_Y = 6,
    PML_ATTR_MAX_GRID_Z = 7,
    PML_ATTR_SHARED_PER_BLOCK = 8,
    PML_ATTR_TOTAL_CONST = 9,
    PML_ATTR_WARP_SIZE = 10,
    PML_ATTR_MAX_PITCH = 11,
    PML_ATTR_REGISTERS_PER_BLOCK = 12,
    PML_ATTR_CLOCK_RATE = 13,
    PML_ATTR_TEXTURE_ALIGNMENT = 14,
    PML_ATTR_GPU_OVERLAP = 15,
    PML_ATTR_SM_COUNT = 16,
    PML_ATTR_CAN_MAP_HOST = 19,
    PML_ATTR_MAX_TEXTURE_1D = 21,
    PML_ATTR_SURFACE_ALIGNMENT = 30,
    PML_ATTR_CONCURRENT_KERNELS = 31,
    PML_ATTR_ECC = 32,
    PML_ATTR_PCI_BUS = 33,
    PML_ATTR_PCI_DEVICE = 34,
    PML_ATTR_MEMORY_CLOCK = 36,
    PML_ATTR_BUS_WIDTH = 37,
    PML_ATTR_L2_SIZE = 38,
    PML_ATTR_THREADS_PER_SM = 39,
    PML_ATTR_ASYNC_ENGINES = 40,
    PML_ATTR_UNIFIED_ADDRESSING = 41,
    PML_ATTR_PCI_DOMAIN = 50,
    PML_ATTR_CAPABILITY_MAJOR = 75,
    PML_ATTR_CAPABILITY_MINOR = 76,
    PML_ATTR_STREAM_PRIORITIES = 78,
    PML_ATTR_GLOBAL_L1 = 79,
    PML_ATTR_LOCAL_L1 = 80,
    PML_ATTR_SHARED_PER_SM = 81,
    PML_ATTR_REGISTERS_PER_SM = 82,
    PML_ATTR_COMPUTE_PREEMPTION = 90,
    PML_ATTR_COOPERATIVE_LAUNCH = 95,
    PML_ATTR_SHARED_PER_BLOCK_OPTIN = 97,
    PML_ATTR_HOST_REGISTER = 99,
    PML_ATTR_VIRTUAL_MEMORY = 102, /* CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    PML_ATTR_BLOCKS_PER_SM = 106,
    PML_ATTR_SHARED_RESERVED = 111,
    PML_ATTR_MEMORY_POOLS = 115,
    PML_ATTR_CLUSTER_LAUNCH = 120,
};

/* cuda.h: CUmemLocation, CUmemAllocationProp, CUmemAccessDesc (v1). */
typedef struct {
    int type, id;
} pml_mem_location;
enum { PML_LOCATION_DEVICE = 1 };
typedef struct {
    int type, handle_types;
    pml_mem_location location;
    void *win32_metadata;
    unsigned char compression, rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
} pml_mem_allocation_prop;

/* Sizes and offsets as measured with NVIDIA's own headers (see the file comment). */
#define PML_CHECK_PROP(type, size, sms, l2, optin, last, reserved_at)                   \
    _Static_assert(sizeof(type) == (size), #type " size");                              \
    _Static_assert(offsetof(type, multiProcessorCount) == (sms), #type " head");        \
    _Static_assert(offsetof(type, l2CacheSize) == (l2), #type " textures");             \
    _Static_assert(offsetof(type, sharedMemPerBlockOptin) == (optin), #type " caches"); \
    _Static_assert(offsetof(type, unifiedFunctionPointers) == (last), #type " tail");   \
    _Static_assert(offsetof(type, reserved) == (reserved_at), #type " reserved")
PML_CHECK_PROP(pml_device_prop_13, 1008, 384, 596, 672, 752, 784);
PML_CHECK_PROP(pml_device_prop_12, 1032, 388, 616, 696, 776, 780);
_Static_assert(sizeof(pml_func_attributes) == 144, "cudaFuncAttributes");
_Static_assert(sizeof(pml_launch_config) == 56, "cudaLaunchConfig_t");
_Static_assert(sizeof(pml_driver_launch_config) == 56, "CUlaunchConfig");
_Static_assert(offsetof(pml_driver_launch_config, stream) == 32, "CUlaunchConfig stream");
_Static_assert(sizeof(pml_pointer_attributes) == 24, "cudaPointerAttributes");

#endif
