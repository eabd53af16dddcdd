/* Functions of the mathematical libraries of which only an output argument matters.
 *
 * Purpose: `PML_OUTPUT(name, 11, size_t)` defines a function that stores 0 through its 11th argument and succeeds:
 *   a workspace size, mostly. `PML_NOTHING(name)` only succeeds. The arguments are integers, enums and pointers in all
 *   of them, which the x86-64 and AArch64 ABIs pass alike, one to a register or an eight-byte stack slot; so one list of
 *   word-sized arguments fits, and a callee may have more of them than its caller passes if it does not read those.
 * Ownership, threads, locks: none.
 */
#ifndef PML_SIMCUDA_OUTPUTS_H
#define PML_SIMCUDA_OUTPUTS_H

#include <stdint.h>
#include <stdlib.h>

#include "cuda_abi.h"

#define PML_WORDS                                                                                                   \
    uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5, uintptr_t a6, uintptr_t a7, uintptr_t a8, \
        uintptr_t a9, uintptr_t a10, uintptr_t a11, uintptr_t a12, uintptr_t a13, uintptr_t a14, uintptr_t a15,     \
        uintptr_t a16, uintptr_t a17, uintptr_t a18, uintptr_t a19, uintptr_t a20

#define PML_NOTHING(name) \
    PML_API int name(void) { return 0; }

#define PML_OUTPUT(name, position, type) \
    PML_API int name(PML_WORDS)          \
    {                                    \
        *(type *)a##position = 0;        \
        return 0;                        \
    }

#define PML_OUTPUTS(name, position, next, type) \
    PML_API int name(PML_WORDS)                 \
    {                                           \
        *(type *)a##position = 0;               \
        *(type *)a##next = 0;                   \
        return 0;                               \
    }

/* One for each of the four types. */
#define PML_OUTPUT_SDCZ(before, after, position, type)                                        \
    PML_OUTPUT(before##S##after, position, type)                                              \
    PML_OUTPUT(before##D##after, position, type) PML_OUTPUT(before##C##after, position, type) \
        PML_OUTPUT(before##Z##after, position, type)
#define PML_NOTHING_SDCZ(before, after) \
    PML_NOTHING(before##S##after)       \
    PML_NOTHING(before##D##after) PML_NOTHING(before##C##after) PML_NOTHING(before##Z##after)

/* Handles and descriptors: something to free. */
#define PML_CREATE(name)            \
    PML_API int name(void **object) \
    {                               \
        *object = calloc(1, 64);    \
        return *object == NULL;     \
    }
#define PML_DESTROY(name)          \
    PML_API int name(void *object) \
    {                              \
        free(object);              \
        return 0;                  \
    }

#endif
