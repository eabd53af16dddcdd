/* Owners: the source lines that live blocks are charged to.
 *
 * An owner is a line of a profiled code object. Where its function was called by a function that other profilers count,
 * the calling line is `around` it: each profiler finds its own innermost line by going outwards. Profilers that count
 * both find it at once, so with one profiler an owner is a line, and recursion makes no new ones.
 *
 * Threads: owners are made with the GIL, by the thread that runs the line; `pml_owners_in_backward`, `pml_owners_index`
 * and `pml_owners_by_index` take a mutex of their own, a leaf, and need no GIL. An owner goes away only while all devices are
 * locked (ledger.h): whoever holds one device's lock may follow the pointers.
 */
#ifndef PML_OWNERS_H
#define PML_OWNERS_H

#include "lines/codes.h"

enum pml_owner_kind {
    PML_OWNER_LINE,     /* allocated by the thread that runs the line */
    PML_OWNER_BACKWARD, /* allocated by autograd's threads while the line waits for them */
    PML_OWNER_AUTOGRAD, /* allocated by autograd's threads while several lines run that may wait */
};

struct pml_owner {
    struct pml_code *code; /* NULL when it is gone */
    int line;
    enum pml_owner_kind kind;
    uint64_t born; /* `pml_owners_serial` when it was made, or was taken for new */
    _Atomic int index; /* -1: has never held anything */
    _Atomic int inner; /* owners that have this one around them */
    struct pml_owner *around;
    struct pml_owner *in_backward;
    struct pml_owner *next; /* of the same line, or of the list of those whose code is gone */
};

/* Changes whenever it may change which profilers count a code object: frames then look again. */
extern uint64_t pml_codes_version;
/* Goes up when a picture is begun, with the GIL. An owner belongs to the pictures that are not younger: blocks that are
 * older than a profiling are not charged to its lines, whatever profiled them. Autograd's threads read it without the
 * GIL: who sees a picture among `pml_active_pictures_groups` sees its number or a higher one. */
extern _Atomic uint64_t pml_owners_serial;

/* True once memory ran out for an owner, until it is told. Needs the GIL. */
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

/* What of an owner's lines is not yet found by the profilers of a code that is called there. */
struct pml_owner *pml_charge_outside(struct pml_owner *owner, uint64_t groups);

/* The line that a picture's group charges, or NULL. */
const struct pml_owner *pml_owners_resolve(const struct pml_owner *owner, int group, uint64_t since);

struct pml_owner *pml_owners_in_backward(struct pml_owner *owner);
extern struct pml_owner pml_owners_autograd;
/* The owner of what no line allocates. It holds nothing. */
extern struct pml_owner pml_owners_nobody;

/* A dense number from 1, given when it is first asked for; -1 when memory runs out. And back; NULL for a number not in use. */
int pml_owners_index(struct pml_owner *owner);
struct pml_owner *pml_owners_by_index(int index);

static inline int pml_owners_number(struct pml_owner *owner)
{
    int index = atomic_load_explicit(&owner->index, memory_order_relaxed);
    return index >= 0 ? index : pml_owners_index(owner);
}

/* A code object is gone: its owners stay until they hold nothing. All devices are locked. */
void pml_owners_forget_code(struct pml_code *code);

void pml_owners_lock(void);
void pml_owners_unlock(void);

#endif
