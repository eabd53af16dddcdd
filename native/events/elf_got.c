/* Rewriting GOT slots (see elf_got.h). The tables are those of the ELF specification, found with dl_iterate_phdr. */
#define _GNU_SOURCE
#include "events/elf_got.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_SLOT(type) false
#endif

struct search {
    const char *library;
    const char *symbol;
    void *replacement;
    void **original;
    void *global; /* what the symbol means in the global scope */
    int patched;
};

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * plt;
    size_t plt_size;
    const ElfW(Rela) * rela;
    size_t rela_size;
};

/* glibc relocates the addresses of the dynamic section, other C libraries leave them relative to the base. */
static const void *address(const struct dl_phdr_info *info, ElfW(Addr) value)
{
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

static void read_entry(struct tables *t, const struct dl_phdr_info *info, const ElfW(Dyn) * entry)
{
    switch (entry->d_tag) {
    case DT_SYMTAB: t->symbols = address(info, entry->d_un.d_ptr); break;
    case DT_STRTAB: t->strings = address(info, entry->d_un.d_ptr); break;
    case DT_JMPREL: t->plt = address(info, entry->d_un.d_ptr); break;
    case DT_PLTRELSZ: t->plt_size = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_RELA: t->rela = address(info, entry->d_un.d_ptr); break;
    case DT_RELASZ: t->rela_size = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    default: break;
    }
}

static struct tables read_tables(const struct dl_phdr_info *info)
{
    struct tables t = {.symbols = NULL};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            read_entry(&t, info, entry);
    }
    return t;
}

/* A slot not bound yet leads back into its own library (lazy binding). */
static bool inside(const struct dl_phdr_info *info, const void *pointer)
{
    uintptr_t at = (uintptr_t)pointer;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && at >= start && at < start + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

/* The linker seals whole pages only: where pages are larger than the library was linked for, what lies in the last one
 * beside other data stays writable, and must. */
static bool read_only(const struct dl_phdr_info *info, const void *slot, uintptr_t page)
{
    uintptr_t at = (uintptr_t)slot;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = (start + info->dlpi_phdr[i].p_memsz) & ~(page - 1);
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO && at >= start && at < end)
            return true;
    }
    return false;
}

static bool write_slot(const struct dl_phdr_info *info, void **slot, void *value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)slot & ~(page - 1));
    bool sealed = read_only(info, slot, page);
    if (sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (sealed)
        mprotect(start, page, PROT_READ);
    return true;
}

static void patch_slot(struct search *search, const struct dl_phdr_info *info, void **slot)
{
    void *now = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (now == search->replacement) {
        search->patched++;
        return;
    }
    void *target = inside(info, now) ? search->global : now;
    if (!target || target == search->replacement)
        return;
    /* before the slot, for whoever calls through it at once */
    *search->original = target;
    if (write_slot(info, slot, search->replacement))
        search->patched++;
}

static void patch_table(struct search *search, const struct dl_phdr_info *info, const struct tables *t,
                        const ElfW(Rela) * rela, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!IS_SLOT(ELF64_R_TYPE(rela[i].r_info)))
            continue;
        const ElfW(Sym) *symbol = &t->symbols[ELF64_R_SYM(rela[i].r_info)];
        if (strcmp(t->strings + symbol->st_name, search->symbol) == 0)
            patch_slot(search, info, (void **)(info->dlpi_addr + rela[i].r_offset));
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *search = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, search->library, strlen(search->library)) != 0)
        return 0;
    struct tables t = read_tables(info);
    if (t.symbols && t.strings) {
        patch_table(search, info, &t, t.plt, t.plt_size);
        patch_table(search, info, &t, t.rela, t.rela_size);
    }
    return 0;
}

int pml_elf_got_patch_known(const char *library, const char *symbol, void *function, void *replacement, void **original)
{
    struct search search = {library, symbol, replacement, original, function, 0};
    dl_iterate_phdr(visit, &search);
    return search.patched;
}

int pml_elf_got_patch(const char *library, const char *symbol, void *replacement, void **original)
{
    /* The linker is asked beforehand: within the search it would wait for a lock while the search holds another, which
     * a thread that loads a library takes in the other order. */
    return pml_elf_got_patch_known(library, symbol, dlsym(RTLD_DEFAULT, symbol), replacement, original);
}
