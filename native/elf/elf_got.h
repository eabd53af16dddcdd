/* Rewriting what a loaded ELF library calls: its GOT slots for one symbol. Linux, 64-bit x86 and Arm.
 *
 * Ownership: none. Threads: any; a slot is written as one aligned word. Lock: the dynamic linker's, held while a
 * library is searched.
 */
#ifndef PML_ELF_GOT_H
#define PML_ELF_GOT_H

#include <stdbool.h>

/* Point every slot of `symbol` in libraries whose file name begins with `library` to `replacement`. Returns the number
 * of slots that now hold it. The first time, `*original` gets the function that the slot led to. */
int pml_elf_got_patch(const char *library, const char *symbol, void *replacement, void **original);
/* The same for a symbol whose function is known, which need not be in the global scope. */
int pml_elf_got_patch_known(const char *library, const char *symbol, void *function, void *replacement,
                            void **original);
/* Whether a slot of `symbol` in such a library holds `replacement`. */
bool pml_elf_got_holds(const char *library, const char *symbol, const void *replacement);

#endif
