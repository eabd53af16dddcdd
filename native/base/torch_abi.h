/* What is known of PyTorch's binaries: names of libraries and functions, layouts, and the versions in which each was
 * seen.
 *
 * What Python's side needs of the same kind is in pytorch_memlab_c/data/torch_abi.py.
 *
 * No header of PyTorch is used, so that one build serves all versions. All that would have to be looked at again for a
 * new version is here; what of NVIDIA's binaries is known, in simcuda/cuda_abi.h. Declarations only: no state.
 * "Seen in" lists the wheels that were examined, of Linux x86-64 unless it says otherwise.
 */
#ifndef PML_TORCH_ABI_H
#define PML_TORCH_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- libraries: beginnings of their file names ---- */

#define PML_TORCH_C10 "libc10.so"
#define PML_TORCH_C10_CUDA "libc10_cuda.so"
#define PML_TORCH_CPU "libtorch_cpu.so"
#define PML_TORCH_CUDA "libtorch_cuda.so"
#define PML_TORCH_PYTHON "libtorch_python.so"

/* ---- devices ---- */

/* c10::Device: passed by value in one integer register on x86-64 and AArch64. Seen in 2.1.2 to 2.14.1. */
struct pml_torch_device {
    int8_t type;  /* c10::DeviceType */
    int8_t index; /* -1: none given */
};

enum { PML_TORCH_DEVICE_CPU = 0, PML_TORCH_DEVICE_CUDA = 1 };

/* ---- accelerator memory: what libc10_cuda calls through its GOT, with the device allocator's lock held ---- */

/* c10::reportMemoryUsageToProfiler(pointer, size, total allocated, total reserved, device). At every allocation, and
 * with a negative size at every free, with the block's rounded size; the totals are those after it. Seen in 2.1.2,
 * 2.6.0, 2.9.1 and 2.14.1, in 2.9.1 for AArch64 too. */
#define PML_TORCH_REPORT "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
typedef void pml_torch_report(void *, int64_t, size_t, size_t, struct pml_torch_device);

/* c10::reportOutOfMemoryToProfiler(size, total allocated, total reserved, device). Seen in 2.1.2, 2.6.0, 2.9.1 and
 * 2.14.1. */
#define PML_TORCH_REPORT_OUT_OF_MEMORY "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
typedef void pml_torch_report_out_of_memory(int64_t, size_t, size_t, struct pml_torch_device);

/* The CUDA runtime's own functions, with the signatures of NVIDIA's headers. The allocator asks for the memory left
 * just before it reports a failure. It records an event for each other stream of a block that is freed, and queries
 * them at later allocations. It gives memory back with cudaFree; expandable segments are unmapped through pointers that
 * no GOT shows, after a wait for the stream or the device. Seen in 2.1.2 to 2.14.1; cudaEventRecordWithFlags and
 * cudaFree are called by some versions only. */
#define PML_CUDA_MEMORY_INFO "cudaMemGetInfo"
#define PML_CUDA_EVENT_RECORD "cudaEventRecord"
#define PML_CUDA_EVENT_RECORD_WITH_FLAGS "cudaEventRecordWithFlags"
#define PML_CUDA_EVENT_QUERY "cudaEventQuery"
#define PML_CUDA_EVENT_SYNCHRONIZE "cudaEventSynchronize"
#define PML_CUDA_FREE "cudaFree"
#define PML_CUDA_STREAM_SYNCHRONIZE "cudaStreamSynchronize"
#define PML_CUDA_DEVICE_SYNCHRONIZE "cudaDeviceSynchronize"

/* How the caching allocator rounds and where it takes blocks from, in bytes: c10/cuda/CUDACachingAllocator's
 * kMinBlockSize, kSmallSize and kSmallBuffer. Seen in 2.1.2, 2.6.0, 2.9.1 and 2.14.1. */
#define PML_TORCH_BLOCK_UNIT UINT64_C(512)          /* blocks are multiples of it */
#define PML_TORCH_SMALL_REQUEST (UINT64_C(1) << 20) /* requests up to this come from small segments */
#define PML_TORCH_SMALL_SEGMENT (UINT64_C(2) << 20) /* which are this large */

/* ---- CPU memory: what libc10 calls through its GOT. Seen in 2.1.2 to 2.14.1, in 2.9.1 for AArch64 too ---- */

#define PML_LIBC_MEMALIGN "posix_memalign"
#define PML_LIBC_FREE "free"

/* ---- what autograd saves: functions of libtorch_cpu ---- */

/* torch::autograd::SavedVariable::SavedVariable(const at::Tensor &, bool is_output, bool is_inplace_on_view), and the
 * same with const std::optional<at::Tensor> &. Called through the GOT by libtorch_cpu itself, libtorch_python and
 * libtorch_cuda. Seen in 2.14.1. In older versions the optional is c10's own class: the third name. */
#define PML_TORCH_SAVED "_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb"
#define PML_TORCH_SAVED_OPTIONAL "_ZN5torch8autograd13SavedVariableC1ERKSt8optionalIN2at6TensorEEbb"
#define PML_TORCH_SAVED_C10_OPTIONAL "_ZN5torch8autograd13SavedVariableC1ERKN3c108optionalIN2at6TensorEEEbb"
typedef void pml_torch_saved(void *self, const void *tensor, bool is_output, bool is_inplace_on_view);

/* const impl::SavedTensorDefaultHooksTLS &at::SavedTensorDefaultHooks::get_tls_state(). Seen in 2.14.1. */
#define PML_TORCH_SAVED_HOOKS_STATE "_ZN2at23SavedTensorDefaultHooks13get_tls_stateEv"
typedef const void *pml_torch_saved_hooks_state(void);

/* int torch::autograd::get_current_graph_task_id(): -1 outside a backward. Seen in 2.14.1. */
#define PML_TORCH_GRAPH_TASK "_ZN5torch8autograd25get_current_graph_task_idEv"
typedef int pml_torch_graph_task(void);

/* PyObject *THPVariable_Wrap(const at::TensorBase &), of libtorch_python. Seen in 2.14.1. */
#define PML_TORCH_WRAP "_Z16THPVariable_WrapRKN2at10TensorBaseE"

/* ---- layouts of objects. Offsets of a tensor's storage, of its memory and its size are not assumed: they are looked
 * for in sample tensors (saved_events.h), in this many words, which the objects have in all versions seen ---- */

enum { PML_TORCH_WORDS_SEARCHED = 12 };

/* Tensors inside torch.func are of classes of their own (at::functorch::TensorWrapper, BatchedTensorImpl,
 * at::FunctionalTensorWrapper), whose first member is the tensor inside. It is looked for in samples, too, in this many
 * words. Seen in 2.14.1: the 23rd. */
enum { PML_TORCH_WRAPPER_WORDS_SEARCHED = 24 };

static inline const void *pml_torch_abi_word(const void *object, size_t at)
{
    return ((const void *const *)object)[at];
}

/* at::Tensor is one pointer, to the c10::TensorImpl. */
static inline const void *pml_torch_abi_tensor_impl(const void *tensor)
{
    return pml_torch_abi_word(tensor, 0);
}

/* c10::StorageImpl: its DataPtr is the memory's pointer, a context, the context's deleter, and the device. */
static inline struct pml_torch_device pml_torch_abi_storage_device(const void *storage, size_t memory_at)
{
    return *(const struct pml_torch_device *)((const void *const *)storage + memory_at + 3);
}

/* std::optional<at::Tensor> of libstdc++: the tensor, then whether it is there. */
static inline const void *pml_torch_abi_optional_tensor(const void *optional)
{
    return ((const bool *)optional)[sizeof(void *)] ? optional : NULL;
}

/* c10::optional<at::Tensor> of older versions: whether it is there, then the tensor. */
static inline const void *pml_torch_abi_c10_optional_tensor(const void *optional)
{
    return *(const bool *)optional ? (const void *const *)optional + 1 : NULL;
}

/* SavedTensorDefaultHooksTLS begins with a std::stack, a std::deque of libstdc++: its map, the map's size, the iterator
 * of its begin and that of its end, of four words each, which start with the current element. Equal ones: it is empty.
 * */
static inline bool pml_torch_abi_saved_hooks_are_set(const void *state)
{
    enum { DEQUE_BEGIN = 2, DEQUE_END = 6 };
    return pml_torch_abi_word(state, DEQUE_BEGIN) != pml_torch_abi_word(state, DEQUE_END);
}

#endif
