/* Rewriting GOT slots (see elf_got.h). */
#define _GNU_SOURCE
#include "elf/elf_got.h"

#include <dlfcn.h>
#include <string.h>

#include "elf/elf.h"

struct search {
    const char *library;
    const char *symbol;
    void *replacement;
    void **original;
    void *global; /* what the symbol means in the global scope */
    int patched;
};

static void patch_slot(const struct pml_elf_object *object, const struct pml_elf_slot *slot, void *data)
{
    struct search *search = data;
    if (!slot->in_got || strcmp(slot->symbol, search->symbol) != 0)
        return;
    void *now = (void *)__atomic_load_n(slot->word, __ATOMIC_ACQUIRE);
    if (now == search->replacement) {
        search->patched++;
        return;
    }
    /* A slot not bound yet leads back into its own library (lazy binding). */
    void *target = pml_elf_contains(object, now) ? search->global : now;
    if (!target || target == search->replacement)
        return;
    /* before the slot, for whoever calls through it at once */
    *search->original = target;
    if (pml_elf_store(object, slot->word, (uintptr_t)search->replacement))
        search->patched++;
}

static void patch_object(const struct pml_elf_object *object, void *data)
{
    const struct search *search = data;
    if (strncmp(pml_elf_basename(object), search->library, strlen(search->library)) == 0)
        pml_elf_each_slot(object, patch_slot, data);
}

static void look_at_slot(const struct pml_elf_object *object, const struct pml_elf_slot *slot, void *data)
{
    struct search *search = data;
    bool holds = (void *)__atomic_load_n(slot->word, __ATOMIC_ACQUIRE) == search->replacement;
    if (slot->in_got && holds && strcmp(slot->symbol, search->symbol) == 0)
        search->patched++;
}

static void look_at_object(const struct pml_elf_object *object, void *data)
{
    const struct search *search = data;
    if (strncmp(pml_elf_basename(object), search->library, strlen(search->library)) == 0)
        pml_elf_each_slot(object, look_at_slot, data);
}

bool pml_elf_got_holds(const char *library, const char *symbol, const void *replacement)
{
    struct search search = {.library = library, .symbol = symbol, .replacement = (void *)replacement};
    pml_elf_each_object(look_at_object, &search);
    return search.patched > 0;
}

int pml_elf_got_patch_known(const char *library, const char *symbol, void *function, void *replacement, void **original)
{
    struct search search = {library, symbol, replacement, original, function, 0};
    pml_elf_each_object(patch_object, &search);
    return search.patched;
}

int pml_elf_got_patch(const char *library, const char *symbol, void *replacement, void **original)
{
    /* The linker looks the symbol up before the search, which holds a lock that must not be held then. */
    return pml_elf_got_patch_known(library, symbol, dlsym(RTLD_DEFAULT, symbol), replacement, original);
}
