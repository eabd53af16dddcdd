/* Loaded ELF objects: their dynamic symbols and relocations, and how to change a word of them. Linux, 64-bit.
 *
 * Ownership: the dynamic linker owns all that a description points to. A description is valid during the visit that
 *   gets it; a copy of it lasts as long as the object stays loaded.
 * Threads: any. Lock: the dynamic linker's, held by pml_elf_each_object. A visit must not call what takes another lock
 *   of the linker (dlopen, dlsym): a thread that loads a library takes the two in the other order.
 */
#ifndef PML_ELF_H
#define PML_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pml_elf_object {
    uintptr_t base;   /* what is added to the file's addresses */
    const char *name; /* path as the linker knows it; "" for the program itself */
    const ElfW(Phdr) * headers;
    size_t header_count;
    ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const ElfW(Rela) * relocations, *plt_relocations;
    size_t relocation_count, plt_relocation_count;
};

/* A pointer that the linker fills with a symbol's address. */
struct pml_elf_slot {
    uintptr_t *word;
    const char *symbol;
    bool in_got; /* else it is a pointer in the object's data */
};

typedef void pml_elf_object_visit(const struct pml_elf_object *object, void *data);
typedef void pml_elf_symbol_visit(ElfW(Sym) * symbol, const char *name, void *data);
typedef void pml_elf_slot_visit(const struct pml_elf_object *object, const struct pml_elf_slot *slot, void *data);

/* Visits each loaded object that has dynamic symbols. */
void pml_elf_each_object(pml_elf_object_visit *visit, void *data);

/* Whether an address lies in one of the object's segments. */
bool pml_elf_contains(const struct pml_elf_object *object, const void *address);

/* The file name without its folders. */
const char *pml_elf_basename(const struct pml_elf_object *object);

/* The symbol of that name which the object defines, or NULL. */
ElfW(Sym) * pml_elf_find(const struct pml_elf_object *object, const char *name);

/* Visits each symbol that the object defines. */
void pml_elf_each_symbol(const struct pml_elf_object *object, pml_elf_symbol_visit *visit, void *data);

/* Visits each slot of the object. */
void pml_elf_each_slot(const struct pml_elf_object *object, pml_elf_slot_visit *visit, void *data);

/* Stores a word in the object's memory, read-only or not, atomically. Returns false if the kernel refuses: nothing has
 * changed. */
bool pml_elf_store(const struct pml_elf_object *object, uintptr_t *word, uintptr_t value);

#endif
