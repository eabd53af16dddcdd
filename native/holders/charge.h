/* Charging: the owner of the line that a frame runs, found or made. Needs the GIL, and takes the locks of all devices
 * where an owner is reused or freed.
 */
#ifndef PML_CHARGE_H
#define PML_CHARGE_H

#include "holders/owners.h"

/* True once memory ran out for an owner, until a profiler has recorded it. */
extern bool pml_charge_failed;

/* The owner that the slow ways find or make; NULL when memory runs out, or where the code has no such line. */
struct pml_owner *pml_charge_intern(struct pml_code *code, int line, struct pml_owner *around);

static inline struct pml_owner *pml_charge_at(struct pml_code *code, int line, struct pml_owner *around)
{
    unsigned i = (unsigned)line - (unsigned)code->owner_line;
    struct pml_owner *owner = i < (unsigned)code->owners ? code->owner[i] : NULL;
    bool fits = owner && owner->around == around && owner->born >= code->since;
    return fits ? owner : pml_charge_intern(code, line, around);
}

/* Which of an owner's lines the profilers of a code that is called there do not find themselves. */
struct pml_owner *pml_charge_outside(struct pml_owner *owner, uint64_t groups);

#endif
