/* Seeing what autograd saves, on ELF systems (see saved_events.h).
 *
 * Threads: `on_saved` runs on whatever thread builds a graph, usually without the GIL.
 */
#define _GNU_SOURCE
#include "events/saved_events.h"

#include <dlfcn.h>
#include <string.h>

#include "events/elf_got.h"
#include "events/tensor_wrappers.h"
#include "holders/thread_line.h"
#include "saved/saved_tables.h"

#define MOST_WRAPPERS 16 /* around one another; more are not looked into */
#define WORDS 12         /* of an object, looked at to find a pointer; the objects are larger */

enum { C10_CPU = 0, C10_CUDA = 1 };

typedef void constructor(void *self, const void *tensor, bool is_output, bool is_inplace_on_view);
typedef const void *state_function(void);
typedef int task_function(void);

static constructor *original_saved;
static constructor *original_saved_optional;
static constructor *original_saved_older;
static state_function *hooks_state;
static task_function *graph_task;
/* Offsets in words: of the storage in a tensor, of memory and size in a storage. 0: not known. */
static size_t storage_at, memory_at, bytes_at;

/* ---- where things are ---- */

static const void *word(const void *object, size_t at)
{
    return ((const void *const *)object)[at];
}

static size_t look_for(const void *object, const void *value)
{
    for (size_t i = 1; i < WORDS; i++)
        if (word(object, i) == value)
            return i;
    return 0;
}

/* The device follows the memory's pointer, its context and its deleter: two bytes, type and index. */
static void read_device(const void *storage, int8_t device[2])
{
    memcpy(device, (const char *)storage + (memory_at + 3) * sizeof(void *), 2);
}

static bool agrees(const struct pml_saved_sample *sample)
{
    int8_t device[2];
    if (word(sample->tensor, storage_at) != sample->storage || word(sample->storage, memory_at) != sample->memory)
        return false;
    read_device(sample->storage, device);
    return (int64_t)(intptr_t)word(sample->storage, bytes_at) == sample->bytes && device[0] == C10_CPU &&
           (device[1] == 0 || device[1] == -1);
}

bool pml_saved_events_learn(const struct pml_saved_sample *samples, int count)
{
    const struct pml_saved_sample *first = samples;
    storage_at = look_for(first->tensor, first->storage);
    memory_at = look_for(first->storage, first->memory);
    bytes_at = look_for(first->storage, (const void *)(intptr_t)first->bytes);
    bool all = storage_at && memory_at && bytes_at;
    for (int i = 0; all && i < count; i++)
        all = agrees(&samples[i]);
    if (!all)
        storage_at = 0;
    return all;
}

bool pml_saved_events_learn_wrapper(const void *wrapper, const void *inside)
{
    return pml_tensor_wrappers_learn(wrapper, inside);
}

/* ---- what is saved ---- */

/* The state begins with a std::stack: empty if its deque begins where it ends. */
bool pml_saved_events_hooks_are_set(void)
{
    const void *state = hooks_state ? hooks_state() : NULL;
    return state && word(state, 2) != word(state, 6);
}

static int slot_of(const int8_t device[2])
{
    if (device[0] == C10_CPU)
        return PML_CPU;
    return device[0] == C10_CUDA && device[1] >= 0 && 1 + device[1] < PML_MAX_DEVICES ? 1 + device[1] : -1;
}

static const struct pml_owner *waiting_line(bool backward)
{
    const struct pml_owner *owner = backward ? pml_thread_line_owner() : NULL;
    return owner && owner->kind == PML_OWNER_BACKWARD ? owner : NULL;
}

/* The storage of a tensor or, where it stands for another one, of the innermost. NULL where there is none. */
static const void *storage_of(const void *handle)
{
    const void *impl = word(handle, 0);
    for (int i = 0; impl && i < MOST_WRAPPERS; i++) {
        const void *inside = pml_tensor_wrappers_inside(impl);
        if (!inside)
            return word(impl, storage_at);
        impl = word(inside, 0);
    }
    return NULL;
}

/* Tensors without memory (undefined, sparse, meta, fake) have none to be kept. */
static bool describe(const void *handle, struct pml_saved_tensor *tensor)
{
    const void *storage = storage_of(handle);
    if (!storage)
        return false;
    int8_t device[2];
    read_device(storage, device);
    int slot = slot_of(device);
    bool backward = graph_task() >= 0;
    *tensor = (struct pml_saved_tensor){
        .storage = word(storage, memory_at),
        .bytes = (int64_t)(intptr_t)word(storage, bytes_at),
        .device = slot,
        .hooked = pml_saved_events_hooks_are_set(),
        .backward = backward,
        .handle = handle,
        .waiting = waiting_line(backward),
    };
    return slot >= 0 && tensor->storage && tensor->bytes > 0;
}

static void note(const void *handle)
{
    struct pml_saved_tensor tensor;
    if (atomic_load_explicit(&pml_saved_tables_following, memory_order_relaxed) && describe(handle, &tensor))
        pml_saved_tables_note(&tensor);
}

/* The constructor may throw: nothing of this function is left on the stack by then. */
static void on_saved(void *self, const void *tensor, bool is_output, bool is_inplace_on_view)
{
    note(tensor);
    original_saved(self, tensor, is_output, is_inplace_on_view);
}

/* An optional tensor: the tensor, then whether it is there. */
static void on_saved_optional(void *self, const void *tensor, bool is_output, bool is_inplace_on_view)
{
    if (((const bool *)tensor)[sizeof(void *)])
        note(tensor);
    original_saved_optional(self, tensor, is_output, is_inplace_on_view);
}

/* The optional of older versions, c10's own: whether it is there, then the tensor. */
static void on_saved_older(void *self, const void *tensor, bool is_output, bool is_inplace_on_view)
{
    if (*(const bool *)tensor)
        note((const void *const *)tensor + 1);
    original_saved_older(self, tensor, is_output, is_inplace_on_view);
}

/* ---- installing ---- */

/* A function of a library that is loaded already. */
static void *find(const char *library, const char *symbol)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *function = handle ? dlsym(handle, symbol) : NULL;
    if (handle)
        dlclose(handle);
    return function;
}

static int patch(const char *library, const char *symbol, constructor *replacement, constructor **original)
{
    void *function = find("libtorch_cpu.so", symbol);
    void *last;
    if (!function)
        return 0;
    *original = (constructor *)function;
    return pml_elf_got_patch_known(library, symbol, function, (void *)replacement, &last);
}

static int patch_all(const char *library)
{
    int slots = patch(library, "_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb", on_saved, &original_saved);
    patch(library, "_ZN5torch8autograd13SavedVariableC1ERKSt8optionalIN2at6TensorEEbb", on_saved_optional,
          &original_saved_optional);
    patch(library, "_ZN5torch8autograd13SavedVariableC1ERKN3c108optionalIN2at6TensorEEEbb", on_saved_older,
          &original_saved_older);
    return slots;
}

bool pml_saved_events_install(void)
{
    const char *library = "libtorch_cpu.so";
    hooks_state = (state_function *)find(library, "_ZN2at23SavedTensorDefaultHooks13get_tls_stateEv");
    graph_task = (task_function *)find(library, "_ZN5torch8autograd25get_current_graph_task_idEv");
    if (!storage_at || !hooks_state || !graph_task)
        return false;
    int slots = patch_all(library);
    patch_all("libtorch_python.so");
    patch_all("libtorch_cuda.so");
    return slots > 0;
}
