/* Functions of the mathematical libraries of which only an output argument matters.
 *
 * Purpose: `SIM_OUTPUT(name, 11, size_t)` defines a function that stores 0 through its 11th argument and succeeds:
 *   a workspace size, mostly. `SIM_NOTHING(name)` only succeeds. The arguments are integers, enums and pointers in all
 *   of them, which the x86-64 and AArch64 ABIs pass alike, one to a register or an eight-byte stack slot; so one list
 * of word-sized arguments fits, and a callee may have more of them than its caller passes if it does not read those.
 * Ownership, threads, locks: none.
 */
#ifndef SIM_OUTPUTS_H
#define SIM_OUTPUTS_H

#include <stdint.h>
#include <stdlib.h>

#include "cuda_abi.h"

#define SIM_WORDS \
    uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4, uintptr_t a5, uintptr_t a6, uintptr_t a7, uintptr_t a8, \
        uintptr_t a9, uintptr_t a10, uintptr_t a11, uintptr_t a12, uintptr_t a13, uintptr_t a14, uintptr_t a15, \
        uintptr_t a16, uintptr_t a17, uintptr_t a18, uintptr_t a19, uintptr_t a20

#define SIM_NOTHING(name) \
    SIM_API int name(void) \
    { \
        return 0; \
    }

#define SIM_OUTPUT(name, position, type) \
    SIM_API int name(SIM_WORDS) \
    { \
        *(type *)a##position = 0; \
        return 0; \
    }

#define SIM_OUTPUTS(name, position, next, type) \
    SIM_API int name(SIM_WORDS) \
    { \
        *(type *)a##position = 0; \
        *(type *)a##next = 0; \
        return 0; \
    }

/* One for each of the four types. */
#define SIM_OUTPUT_SDCZ(before, after, position, type) \
    SIM_OUTPUT(before##S##after, position, type) \
    SIM_OUTPUT(before##D##after, position, type) \
    SIM_OUTPUT(before##C##after, position, type) SIM_OUTPUT(before##Z##after, position, type)
#define SIM_NOTHING_SDCZ(before, after) \
    SIM_NOTHING(before##S##after) \
    SIM_NOTHING(before##D##after) SIM_NOTHING(before##C##after) SIM_NOTHING(before##Z##after)

/* Handles and descriptors: something to free. */
#define SIM_CREATE(name) \
    SIM_API int name(void **object) \
    { \
        *object = calloc(1, 64); \
        return *object == NULL; \
    }
#define SIM_DESTROY(name) \
    SIM_API int name(void *object) \
    { \
        free(object); \
        return 0; \
    }

#endif
