/* Loaded ELF objects: their dynamic symbols and relocations, and how to change a word of them.
 *
 * Ownership: a list of objects belongs to the caller, what it points to belongs to the loader; an object must not be
 *   unloaded meanwhile. Threads: any, one list by one thread. Locks: the loader's, inside pml_elf_list only.
 */
#ifndef PML_SIMCUDA_ELF_OBJECTS_H
#define PML_SIMCUDA_ELF_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uintptr_t base; /* what is added to the file's addresses */
    char name[512]; /* path as the loader knows it; "" for the program itself */
    const ElfW(Phdr) * headers;
    size_t header_count;
    ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const ElfW(Rela) * relocations, *plt_relocations;
    size_t relocation_count, plt_relocation_count;
} pml_elf;

/* All loaded objects; free() the list. Returns their number, 0 without memory. */
size_t pml_elf_list(pml_elf **objects);

/* Whether an address lies in one of the object's segments. */
bool pml_elf_contains(const pml_elf *object, const void *address);

/* The file name without its folders. */
const char *pml_elf_basename(const pml_elf *object);

/* The symbol of that name which the object defines, or NULL. */
ElfW(Sym) * pml_elf_find(const pml_elf *object, const char *name);

/* Calls visit for each symbol that the object defines. */
void pml_elf_each_symbol(const pml_elf *object, void (*visit)(ElfW(Sym) * symbol, const char *name, void *data),
                         void *data);

/* Calls visit for each pointer that the loader fills with a symbol's address. */
void pml_elf_each_slot(const pml_elf *object, void (*visit)(uintptr_t *slot, const char *name, void *data), void *data);

/* Stores a word in the object's memory, read-only or not. Returns false if the kernel refuses. */
bool pml_elf_store(const pml_elf *object, uintptr_t *word, uintptr_t value);

#endif
