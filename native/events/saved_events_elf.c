/* Seeing what autograd saves, on ELF systems (see saved_events.h).
 *
 * Threads: `on_saved` runs on whatever thread builds a graph, usually without the GIL.
 */
#define _GNU_SOURCE
#include "events/saved_events.h"

#include <dlfcn.h>

#include "elf/elf_got.h"
#include "events/tensor_wrappers.h"
#include "base/torch_abi.h"
#include "saved/saved_tables.h"

#define MOST_WRAPPERS 16 /* around one another; more are not looked into */

/* All of these are found once, before anything is followed, and stay: threads read them without a lock. */
static pml_torch_saved *original_saved;
static pml_torch_saved *original_saved_optional;
static pml_torch_saved *original_saved_c10_optional;
static pml_torch_saved_hooks_state *hooks_state;
static pml_torch_graph_task *graph_task;
/* Offsets in words: of the storage in a tensor, of memory and size in a storage. 0: not known. */
static size_t storage_at, memory_at, bytes_at;
static bool installed;

/* ---- where things are ---- */

static size_t look_for(const void *object, const void *value)
{
    for (size_t i = 1; i < PML_TORCH_WORDS_SEARCHED; i++)
        if (pml_torch_abi_word(object, i) == value)
            return i;
    return 0;
}

static bool agrees(const struct pml_saved_sample *sample)
{
    const void *storage = pml_torch_abi_word(sample->tensor, storage_at);
    if (storage != sample->storage || pml_torch_abi_word(storage, memory_at) != sample->memory)
        return false;
    struct pml_torch_device device = pml_torch_abi_storage_device(storage, memory_at);
    return (int64_t)(intptr_t)pml_torch_abi_word(storage, bytes_at) == sample->bytes &&
           device.type == PML_TORCH_DEVICE_CPU && (device.index == 0 || device.index == -1);
}

bool pml_saved_events_learn(const struct pml_saved_sample *samples, int count)
{
    const struct pml_saved_sample *first = samples;
    if (storage_at)
        return true;
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

bool pml_saved_events_hooks_are_set(void)
{
    const void *state = hooks_state ? hooks_state() : NULL;
    return state && pml_torch_abi_saved_hooks_are_set(state);
}

static int slot_of(struct pml_torch_device device)
{
    if (device.type == PML_TORCH_DEVICE_CPU)
        return PML_CPU;
    int slot = 1 + device.index;
    return device.type == PML_TORCH_DEVICE_CUDA && slot > 0 && slot < PML_MAX_DEVICES ? slot : -1;
}

/* The storage of a tensor or, where it stands for another one, of the innermost. NULL where there is none. */
static const void *storage_of(const void *handle)
{
    const void *impl = pml_torch_abi_tensor_impl(handle);
    for (int i = 0; impl && i < MOST_WRAPPERS; i++) {
        const void *inside = pml_tensor_wrappers_inside(impl);
        if (!inside)
            return pml_torch_abi_word(impl, storage_at);
        impl = pml_torch_abi_tensor_impl(inside);
    }
    return NULL;
}

/* Tensors without memory (undefined, sparse, meta, fake) have none to be kept. */
static bool describe(const void *handle, struct pml_saved_tensor *tensor)
{
    const void *storage = storage_of(handle);
    if (!storage)
        return false;
    int slot = slot_of(pml_torch_abi_storage_device(storage, memory_at));
    *tensor = (struct pml_saved_tensor){
        .storage = pml_torch_abi_word(storage, memory_at),
        .bytes = (int64_t)(intptr_t)pml_torch_abi_word(storage, bytes_at),
        .device = slot,
        .hooked = pml_saved_events_hooks_are_set(),
        .backward = graph_task() >= 0,
        .handle = handle,
    };
    return slot >= 0 && tensor->storage && tensor->bytes > 0;
}

static void note(const void *handle)
{
    struct pml_saved_tensor tensor;
    if (atomic_load_explicit(&pml_saved_tables_following, memory_order_acquire) && describe(handle, &tensor))
        pml_saved_tables_note(&tensor);
}

static void note_optional(const void *handle)
{
    if (handle)
        note(handle);
}

/* The constructor may throw: nothing of this function is left on the stack by then. */
static void on_saved(void *self, const void *tensor, bool is_output, bool is_inplace_on_view)
{
    note(tensor);
    original_saved(self, tensor, is_output, is_inplace_on_view);
}

static void on_saved_optional(void *self, const void *tensor, bool is_output, bool is_inplace_on_view)
{
    note_optional(pml_torch_abi_optional_tensor(tensor));
    original_saved_optional(self, tensor, is_output, is_inplace_on_view);
}

static void on_saved_c10_optional(void *self, const void *tensor, bool is_output, bool is_inplace_on_view)
{
    note_optional(pml_torch_abi_c10_optional_tensor(tensor));
    original_saved_c10_optional(self, tensor, is_output, is_inplace_on_view);
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

static int patch(const char *library, const char *symbol, pml_torch_saved *replacement, pml_torch_saved **original)
{
    void *function = find(PML_TORCH_CPU, symbol);
    void *last;
    if (!function)
        return 0;
    *original = (pml_torch_saved *)function;
    return pml_elf_got_patch_known(library, symbol, function, (void *)replacement, &last);
}

static int patch_all(const char *library)
{
    int slots = patch(library, PML_TORCH_SAVED, on_saved, &original_saved);
    patch(library, PML_TORCH_SAVED_OPTIONAL, on_saved_optional, &original_saved_optional);
    patch(library, PML_TORCH_SAVED_C10_OPTIONAL, on_saved_c10_optional, &original_saved_c10_optional);
    return slots;
}

bool pml_saved_events_install(void)
{
    if (installed)
        return true;
    const char *library = PML_TORCH_CPU;
    hooks_state = (pml_torch_saved_hooks_state *)find(library, PML_TORCH_SAVED_HOOKS_STATE);
    graph_task = (pml_torch_graph_task *)find(library, PML_TORCH_GRAPH_TASK);
    if (!storage_at || !hooks_state || !graph_task)
        return false;
    int slots = patch_all(library);
    patch_all(PML_TORCH_PYTHON);
    patch_all(PML_TORCH_CUDA);
    installed = slots > 0;
    return installed;
}
