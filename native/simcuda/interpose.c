/* Puts the simulated functions in the place of the real ones when PyTorch was loaded first.
 *
 * Purpose: a library loaded into the global scope before PyTorch wins by the loader's rules alone. Otherwise
 *   1. the pointers that are already bound (GOT slots of PyTorch and of all other loaded objects) are rewritten;
 *   2. the symbol tables of the real CUDA libraries are changed, so that objects loaded later (libtorch_cuda_linalg.so,
 *      extensions) and dlsym find the simulated functions too.
 *   In both orders libc10_cuda's report of allocations is led through contents.c.
 * Ownership: none. Threads: to be called by one thread at a time, before CUDA is used.
 * Lock: the dynamic linker's, while the loaded objects are walked.
 */
#define _GNU_SOURCE
#include "contents.h"
#include "elf/elf.h"
#include "sim.h"

#include <string.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the simulated GPU knows x86-64 and AArch64"
#endif

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* The libraries whose functions are simulated. */
static const char *const real_libraries[] = {
    "libcudart.",   "libcublas.", "libcublasLt.", "libcudnn.", "libcufft.",     "libcusparse.",
    "libcusolver.", "libnccl.",   "libnvrtc.",    "libcuda.",  "libnvidia-ml.",
};

/* Beginnings of the names that are defined here: most names of an object need no look-up. */
static const char *const name_beginnings[] = {"cu", "__cuda", "nccl", "nvml", "nvrtc"};

struct work {
    struct pml_elf_object self; /* no name: not found */
    uintptr_t report;           /* c10::reportMemoryUsageToProfiler, 0: not loaded */
    const struct pml_elf_object *object;
    int changed, refused;
};

static bool begins_with_one_of(const char *name, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static bool is_real(const struct pml_elf_object *object)
{
    return begins_with_one_of(pml_elf_basename(object), real_libraries, LENGTH(real_libraries));
}

static bool may_be_ours(const char *name)
{
    return begins_with_one_of(name, name_beginnings, LENGTH(name_beginnings));
}

static void change(struct work *work, const struct pml_elf_object *object, uintptr_t *word, uintptr_t value)
{
    if (*word == value)
        return;
    if (pml_elf_store(object, word, value))
        work->changed++;
    else
        work->refused++;
}

static void bind_slot(const struct pml_elf_object *object, const struct pml_elf_slot *slot, void *data)
{
    struct work *work = data;
    const ElfW(Sym) *ours = may_be_ours(slot->symbol) ? pml_elf_find(&work->self, slot->symbol) : NULL;
    if (ours)
        change(work, object, slot->word, work->self.base + ours->st_value);
}

/* Moves the real library's symbol to our function: the linker adds the library's base to the value. */
static void move_symbol(ElfW(Sym) * ours, const char *name, void *data)
{
    struct work *work = data;
    const struct pml_elf_object *real = work->object;
    ElfW(Sym) *theirs = may_be_ours(name) ? pml_elf_find(real, name) : NULL;
    if (theirs)
        change(work, real, &theirs->st_value, work->self.base + ours->st_value - real->base);
}

/* The report goes on to PyTorch's own function, whatever the slot holds: the profiler's hook, if it was there first, is
 * put back over this by a second pml_allocator_events_install, and must not be called through both. */
static void bind_report(const struct pml_elf_object *object, const struct pml_elf_slot *slot, void *data)
{
    struct work *work = data;
    if (work->report && strcmp(slot->symbol, PML_TORCH_REPORT) == 0) {
        sim_contents_chain((pml_torch_report *)work->report);
        change(work, object, slot->word, (uintptr_t)sim_contents_report);
    }
}

static void look_at(const struct pml_elf_object *object, void *data)
{
    struct work *work = data;
    const char *name = pml_elf_basename(object);
    const ElfW(Sym) *report = NULL;
    if (pml_elf_contains(object, real_libraries))
        work->self = *object;
    if (strncmp(name, PML_TORCH_C10, strlen(PML_TORCH_C10)) == 0)
        report = pml_elf_find(object, PML_TORCH_REPORT);
    if (report && work->report == 0)
        work->report = object->base + report->st_value;
}

static void rebind(const struct pml_elf_object *object, void *data)
{
    struct work *work = data;
    work->object = object;
    if (object->base == work->self.base)
        return;
    pml_elf_each_slot(object, bind_slot, work);
    if (is_real(object))
        pml_elf_each_symbol(&work->self, move_symbol, work);
    if (strncmp(pml_elf_basename(object), PML_TORCH_C10_CUDA, strlen(PML_TORCH_C10_CUDA)) == 0)
        pml_elf_each_slot(object, bind_report, work);
}

/* Returns how many words were changed; -1: this library is not found among the loaded ones, -2: the kernel refused a
 * change. */
SIM_API int pml_simcuda_interpose(void)
{
    struct work work = {.report = 0};
    pml_elf_each_object(look_at, &work);
    if (!work.self.name)
        return -1;
    pml_elf_each_object(rebind, &work);
    return work.refused ? -2 : work.changed;
}
