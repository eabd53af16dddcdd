/* Loaded ELF objects (see elf.h). The tables are those of the ELF specification, found with dl_iterate_phdr. */
#define _GNU_SOURCE
#include "elf/elf.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { TYPE_JUMP = R_X86_64_JUMP_SLOT, TYPE_GLOBAL = R_X86_64_GLOB_DAT, TYPE_POINTER = R_X86_64_64 };
#elif defined(__aarch64__)
enum { TYPE_JUMP = R_AARCH64_JUMP_SLOT, TYPE_GLOBAL = R_AARCH64_GLOB_DAT, TYPE_POINTER = R_AARCH64_ABS64 };
#else
enum { TYPE_JUMP = -1, TYPE_GLOBAL = -1, TYPE_POINTER = -1 }; /* no slot of another processor is known */
#endif

/* ---- objects ---- */

/* glibc relocates the addresses of the dynamic section, other C libraries leave them relative to the base. */
static uintptr_t absolute(const struct pml_elf_object *object, uintptr_t address)
{
    return address < object->base ? address + object->base : address;
}

static void read_entry(struct pml_elf_object *object, const ElfW(Dyn) * entry)
{
    uintptr_t address = absolute(object, entry->d_un.d_ptr);
    switch (entry->d_tag) {
    case DT_SYMTAB: object->symbols = (ElfW(Sym) *)address; break;
    case DT_STRTAB: object->strings = (const char *)address; break;
    case DT_GNU_HASH: object->gnu_hash = (const uint32_t *)address; break;
    case DT_RELA: object->relocations = (const ElfW(Rela) *)address; break;
    case DT_RELASZ: object->relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_JMPREL: object->plt_relocations = (const ElfW(Rela) *)address; break;
    case DT_PLTRELSZ: object->plt_relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    default: break;
    }
}

static void read_dynamic_section(struct pml_elf_object *object)
{
    for (size_t i = 0; i < object->header_count; i++) {
        if (object->headers[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->base + object->headers[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            read_entry(object, entry);
    }
}

struct visitor {
    pml_elf_object_visit *visit;
    void *data;
};

static int describe(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct visitor *visitor = data;
    struct pml_elf_object object = {
        .base = info->dlpi_addr,
        .name = info->dlpi_name ? info->dlpi_name : "",
        .headers = info->dlpi_phdr,
        .header_count = info->dlpi_phnum,
    };
    read_dynamic_section(&object);
    if (object.symbols && object.strings)
        visitor->visit(&object, visitor->data);
    return 0;
}

void pml_elf_each_object(pml_elf_object_visit *visit, void *data)
{
    struct visitor visitor = {visit, data};
    dl_iterate_phdr(describe, &visitor);
}

static const ElfW(Phdr) * segment_at(const struct pml_elf_object *object, uintptr_t address, unsigned type)
{
    for (size_t i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->headers[i];
        if (header->p_type == type && address - (object->base + header->p_vaddr) < header->p_memsz)
            return header;
    }
    return NULL;
}

bool pml_elf_contains(const struct pml_elf_object *object, const void *address)
{
    return segment_at(object, (uintptr_t)address, PT_LOAD) != NULL;
}

const char *pml_elf_basename(const struct pml_elf_object *object)
{
    const char *slash = strrchr(object->name, '/');
    return slash ? slash + 1 : object->name;
}

/* ---- symbols, by the GNU hash table (every object of today's toolchains has one) ----
 * The table: bucket count, index of the first hashed symbol, size of the Bloom filter in words, a shift; the filter;
 * the buckets, each the index of its first symbol or 0; from the first hashed symbol on one hash each, its lowest bit
 * set on the last of a bucket. */

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = 33 * hash + (unsigned char)*name;
    return hash;
}

static const uint32_t *buckets_of(const uint32_t *table)
{
    return table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
}

static bool defines(const ElfW(Sym) * symbol)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
}

ElfW(Sym) * pml_elf_find(const struct pml_elf_object *object, const char *name)
{
    const uint32_t *table = object->gnu_hash;
    if (!table || table[0] == 0)
        return NULL;
    uint32_t hash = hash_of(name), count = table[0], first = table[1];
    const uint32_t *buckets = buckets_of(table), *chain = buckets + count;
    for (uint32_t at = buckets[hash % count]; at >= first && at != 0; at++) {
        uint32_t each = chain[at - first];
        ElfW(Sym) *symbol = &object->symbols[at];
        if ((each | 1) == (hash | 1) && defines(symbol) && strcmp(object->strings + symbol->st_name, name) == 0)
            return symbol;
        if (each & 1)
            break;
    }
    return NULL;
}

void pml_elf_each_symbol(const struct pml_elf_object *object, pml_elf_symbol_visit *visit, void *data)
{
    const uint32_t *table = object->gnu_hash;
    if (!table)
        return;
    const uint32_t *buckets = buckets_of(table), *chain = buckets + table[0];
    for (uint32_t bucket = 0; bucket < table[0]; bucket++) {
        for (uint32_t at = buckets[bucket]; at != 0; at++) {
            ElfW(Sym) *symbol = &object->symbols[at];
            if (defines(symbol))
                visit(symbol, object->strings + symbol->st_name, data);
            if (chain[at - table[1]] & 1)
                break;
        }
    }
}

/* ---- slots ---- */

static void visit_slots(const struct pml_elf_object *object, const ElfW(Rela) * relocations, size_t count,
                        pml_elf_slot_visit *visit, void *data)
{
    for (size_t i = 0; i < count; i++) {
        const ElfW(Rela) *each = &relocations[i];
        int type = (int)ELF64_R_TYPE(each->r_info);
        size_t at = ELF64_R_SYM(each->r_info);
        bool in_got = type == TYPE_JUMP || type == TYPE_GLOBAL;
        if (at == 0 || !(in_got || (type == TYPE_POINTER && each->r_addend == 0)))
            continue;
        struct pml_elf_slot slot = {
            .word = (uintptr_t *)(object->base + each->r_offset),
            .symbol = object->strings + object->symbols[at].st_name,
            .in_got = in_got,
        };
        visit(object, &slot, data);
    }
}

void pml_elf_each_slot(const struct pml_elf_object *object, pml_elf_slot_visit *visit, void *data)
{
    visit_slots(object, object->plt_relocations, object->plt_relocation_count, visit, data);
    visit_slots(object, object->relocations, object->relocation_count, visit, data);
}

/* ---- writing ---- */

/* The protection that the linker has left on a page. It seals whole pages only: where pages are larger than the library
 * was linked for, what lies in the last one beside other data stays writable, and must. */
static int protection_of(const struct pml_elf_object *object, uintptr_t word, uintptr_t page_start, size_t page)
{
    const ElfW(Phdr) *sealed = segment_at(object, word, PT_GNU_RELRO);
    if (sealed && page_start + page <= object->base + sealed->p_vaddr + sealed->p_memsz)
        return PROT_READ;
    const ElfW(Phdr) *segment = segment_at(object, word, PT_LOAD);
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

bool pml_elf_store(const struct pml_elf_object *object, uintptr_t *word, uintptr_t value)
{
    if (!pml_elf_contains(object, word))
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)word / page * page; /* a word is aligned: it lies in one page */
    int protection = protection_of(object, (uintptr_t)word, start, page);
    bool writable = protection & PROT_WRITE;
    /* Other threads may be running code of that page: it stays executable if it is. */
    if (!writable && mprotect((void *)start, page, protection | PROT_READ | PROT_WRITE) != 0)
        return false;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (!writable)
        mprotect((void *)start, page, protection);
    return true;
}
