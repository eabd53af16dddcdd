/* Puts the simulated functions in the place of the real ones when PyTorch was loaded first.
 *
 * Purpose: a library loaded into the global scope before PyTorch wins by the loader's rules alone. Otherwise
 *   1. the pointers that are already bound (GOT slots of PyTorch and of all other loaded objects) are rewritten;
 *   2. the symbol tables of the real CUDA libraries are changed, so that objects loaded later (libtorch_cuda_linalg.so,
 *      extensions) and dlsym find the simulated functions too.
 *   In both orders libc10_cuda's report of allocations is led through contents.c.
 * Ownership: none. Threads: to be called by one thread at a time, before CUDA is used. Locks: the loader's, inside elf_objects.c.
 */
#define _GNU_SOURCE
#include "contents.h"
#include "elf_objects.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* The libraries whose functions are simulated. */
static const char *const k_real[] = {"libcudart.", "libcublas.",   "libcublasLt.", "libcudnn.",
                                     "libcufft.",  "libcusparse.", "libcusolver.", "libnccl.",
                                     "libnvrtc.",  "libcuda.",     "libnvidia-ml."};

typedef struct {
    const pml_elf *self, *object;
    uintptr_t report; /* c10::reportMemoryUsageToProfiler, 0: not loaded */
    int changed, refused;
} work;

static bool is_real(const pml_elf *object)
{
    const char *name = pml_elf_basename(object);
    for (size_t i = 0; i < sizeof k_real / sizeof k_real[0]; i++)
        if (strncmp(name, k_real[i], strlen(k_real[i])) == 0)
            return true;
    return false;
}

static void change(work *state, uintptr_t *word, uintptr_t value)
{
    if (*word == value)
        return;
    if (pml_elf_store(state->object, word, value))
        state->changed++;
    else
        state->refused++;
}

/* The prefixes of what we define: most names of an object need no look-up. */
static bool may_be_ours(const char *name)
{
    return strncmp(name, "cu", 2) == 0 || strncmp(name, "__cuda", 6) == 0 || strncmp(name, "nccl", 4) == 0 ||
           strncmp(name, "nvml", 4) == 0 || strncmp(name, "nvrtc", 5) == 0;
}

static void bind_slot(uintptr_t *slot, const char *name, void *data)
{
    work *state = data;
    if (!may_be_ours(name))
        return;
    const ElfW(Sym) *symbol = pml_elf_find(state->self, name);
    if (symbol != NULL)
        change(state, slot, state->self->base + symbol->st_value);
}

/* Moves the real library's symbol to our function: the loader adds the library's base to the value. */
static void move_symbol(ElfW(Sym) * ours, const char *name, void *data)
{
    work *state = data;
    ElfW(Sym) *theirs = may_be_ours(name) ? pml_elf_find(state->object, name) : NULL;
    if (theirs != NULL)
        change(state, &theirs->st_value, state->self->base + ours->st_value - state->object->base);
}

/* The report goes on to PyTorch's own function, whatever the slot holds: the profiler's hook (events_elf.c), if it was
 * there first, is put back over this by a second pml_events_install, and must not be called through both. */
static void bind_report(uintptr_t *slot, const char *name, void *data)
{
    work *state = data;
    if (strcmp(name, PML_REPORT_SYMBOL) == 0 && state->report != 0) {
        pml_contents_chain((pml_report_function)state->report);
        change(state, slot, (uintptr_t)pml_contents_report);
    }
}

static uintptr_t find_report(const pml_elf *objects, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool c10 = strncmp(pml_elf_basename(&objects[i]), "libc10.", 7) == 0;
        const ElfW(Sym) *symbol = c10 ? pml_elf_find(&objects[i], PML_REPORT_SYMBOL) : NULL;
        if (symbol != NULL)
            return objects[i].base + symbol->st_value;
    }
    return 0;
}

static const pml_elf *find_self(const pml_elf *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pml_elf_contains(&objects[i], (const void *)k_real))
            return &objects[i];
    return NULL;
}

/* Returns how many words were changed; -1: nothing is loaded or memory is short, -2: the kernel refused a change. */
PML_API int pml_simcuda_interpose(void)
{
    pml_elf *objects;
    size_t count = pml_elf_list(&objects);
    work state = {.self = find_self(objects, count), .report = find_report(objects, count)};
    for (size_t i = 0; i < count && state.self != NULL; i++) {
        state.object = &objects[i];
        if (state.object == state.self)
            continue;
        pml_elf_each_slot(state.object, bind_slot, &state);
        if (is_real(state.object))
            pml_elf_each_symbol(state.self, move_symbol, &state);
        if (strncmp(pml_elf_basename(state.object), "libc10_cuda.", 12) == 0)
            pml_elf_each_slot(state.object, bind_report, &state);
    }
    bool known = state.self != NULL;
    free(objects);
    return !known ? -1 : state.refused ? -2 : state.changed;
}
