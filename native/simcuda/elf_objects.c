/* See elf_objects.h. */
#define _GNU_SOURCE
#include "elf_objects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { SLOT_JUMP = R_X86_64_JUMP_SLOT, SLOT_GLOBAL = R_X86_64_GLOB_DAT, SLOT_POINTER = R_X86_64_64 };
#elif defined(__aarch64__)
enum { SLOT_JUMP = R_AARCH64_JUMP_SLOT, SLOT_GLOBAL = R_AARCH64_GLOB_DAT, SLOT_POINTER = R_AARCH64_ABS64 };
#else
#error "the simulated GPU knows x86-64 and AArch64"
#endif

/* ---- the list ---- */

/* glibc has added the base to the pointers of the dynamic section, other loaders have not. */
static uintptr_t absolute(const pml_elf *object, uintptr_t pointer)
{
    return pointer < object->base ? pointer + object->base : pointer;
}

static void read_dynamic(pml_elf *object, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t pointer = absolute(object, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB: object->symbols = (ElfW(Sym) *)pointer; break;
        case DT_STRTAB: object->strings = (const char *)pointer; break;
        case DT_GNU_HASH: object->gnu_hash = (const uint32_t *)pointer; break;
        case DT_RELA: object->relocations = (const ElfW(Rela) *)pointer; break;
        case DT_RELASZ: object->relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_JMPREL: object->plt_relocations = (const ElfW(Rela) *)pointer; break;
        case DT_PLTRELSZ: object->plt_relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
        }
    }
}

typedef struct {
    pml_elf *objects;
    size_t count, capacity;
} list;

/* Only copies: the loader's lock is held here, so nothing may be looked up. */
static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
    list *all = data;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? 2 * all->capacity : 128;
        pml_elf *grown = realloc(all->objects, capacity * sizeof *grown);
        if (grown == NULL)
            return 1;
        all->objects = grown;
        all->capacity = capacity;
    }
    pml_elf *object = &all->objects[all->count];
    memset(object, 0, sizeof *object);
    object->base = info->dlpi_addr;
    strncpy(object->name, info->dlpi_name ? info->dlpi_name : "", sizeof object->name - 1);
    object->headers = info->dlpi_phdr;
    object->header_count = info->dlpi_phnum;
    for (size_t i = 0; i < object->header_count; i++)
        if (object->headers[i].p_type == PT_DYNAMIC)
            read_dynamic(object, (const ElfW(Dyn) *)(object->base + object->headers[i].p_vaddr));
    if (object->symbols != NULL && object->strings != NULL)
        all->count++;
    return 0;
}

size_t pml_elf_list(pml_elf **objects)
{
    list all = {0};
    if (dl_iterate_phdr(add_object, &all) != 0) {
        free(all.objects);
        all = (list){0};
    }
    *objects = all.objects;
    return all.count;
}

static const ElfW(Phdr) * segment_at(const pml_elf *object, uintptr_t address, unsigned type)
{
    for (size_t i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->headers[i];
        if (header->p_type == type && address - (object->base + header->p_vaddr) < header->p_memsz)
            return header;
    }
    return NULL;
}

bool pml_elf_contains(const pml_elf *object, const void *address)
{
    return segment_at(object, (uintptr_t)address, PT_LOAD) != NULL;
}

const char *pml_elf_basename(const pml_elf *object)
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

static bool defines(const pml_elf *object, const ElfW(Sym) * symbol)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
}

ElfW(Sym) * pml_elf_find(const pml_elf *object, const char *name)
{
    const uint32_t *table = object->gnu_hash;
    if (table == NULL || table[0] == 0)
        return NULL;
    uint32_t hash = hash_of(name), count = table[0], first = table[1];
    const uint32_t *buckets = buckets_of(table), *chain = buckets + count;
    for (uint32_t at = buckets[hash % count]; at >= first && at != 0; at++) {
        uint32_t each = chain[at - first];
        ElfW(Sym) *symbol = &object->symbols[at];
        if ((each | 1) == (hash | 1) && defines(object, symbol) && strcmp(object->strings + symbol->st_name, name) == 0)
            return symbol;
        if (each & 1)
            break;
    }
    return NULL;
}

void pml_elf_each_symbol(const pml_elf *object, void (*visit)(ElfW(Sym) * symbol, const char *name, void *data),
                         void *data)
{
    const uint32_t *table = object->gnu_hash;
    if (table == NULL)
        return;
    const uint32_t *buckets = buckets_of(table), *chain = buckets + table[0];
    for (uint32_t bucket = 0; bucket < table[0]; bucket++) {
        for (uint32_t at = buckets[bucket]; at != 0; at++) {
            ElfW(Sym) *symbol = &object->symbols[at];
            if (defines(object, symbol))
                visit(symbol, object->strings + symbol->st_name, data);
            if (chain[at - table[1]] & 1)
                break;
        }
    }
}

/* ---- relocations ---- */

static void each_slot(const pml_elf *object, const ElfW(Rela) * relocations, size_t count,
                      void (*visit)(uintptr_t *slot, const char *name, void *data), void *data)
{
    for (size_t i = 0; i < count; i++) {
        const ElfW(Rela) *each = &relocations[i];
        unsigned type = ELF64_R_TYPE(each->r_info), at = ELF64_R_SYM(each->r_info);
        bool pointer = type == SLOT_JUMP || type == SLOT_GLOBAL || (type == SLOT_POINTER && each->r_addend == 0);
        if (at != 0 && pointer)
            visit((uintptr_t *)(object->base + each->r_offset), object->strings + object->symbols[at].st_name, data);
    }
}

void pml_elf_each_slot(const pml_elf *object, void (*visit)(uintptr_t *slot, const char *name, void *data), void *data)
{
    each_slot(object, object->plt_relocations, object->plt_relocation_count, visit, data);
    each_slot(object, object->relocations, object->relocation_count, visit, data);
}

/* ---- writing ---- */

/* The protection the loader has left on a page: RELRO covers the whole pages of its span only. */
static int protection_of(const pml_elf *object, uintptr_t word, uintptr_t page_start, size_t page)
{
    const ElfW(Phdr) *relro = segment_at(object, word, PT_GNU_RELRO);
    if (relro != NULL && page_start + page <= object->base + relro->p_vaddr + relro->p_memsz)
        return PROT_READ;
    const ElfW(Phdr) *segment = segment_at(object, word, PT_LOAD);
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

bool pml_elf_store(const pml_elf *object, uintptr_t *word, uintptr_t value)
{
    if (!pml_elf_contains(object, word))
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)word / page * page; /* a word is aligned: it lies in one page */
    int before = protection_of(object, (uintptr_t)word, start, page);
    /* Other threads may be running code of that page: it stays executable if it is. */
    if (mprotect((void *)start, page, before | PROT_READ | PROT_WRITE) != 0)
        return false;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    return mprotect((void *)start, page, before) == 0;
}
