/* Owners: the source lines that live blocks are charged to.
 *
 * An owner is a line of a profiled code object. Where its function was called by a function that other profilers count,
 * the calling line is `around` it: each profiler finds its own innermost line by going outwards. Profilers that count
 * both find it at once, so with one profiler an owner is a line, and recursion makes no new ones.
 *
 * Threads: owners are made with the GIL, by the thread that runs the line; `pml_owners_in_backward`, `pml_owners_index`
 * and `pml_owners_by_index` take a mutex of their own, a leaf, and need no GIL. An owner is freed only while all
 * devices are locked (ledger.h): a thread that holds any device's lock may follow the pointers.
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
    uint64_t born;     /* `pml_moment` when it was made, or was taken for new; see `pml_peak_picture.since` */
    _Atomic int index; /* -1: has never held anything */
    _Atomic int inner; /* owners that have this one around them */
    struct pml_owner *around;
    _Atomic(struct pml_owner *) in_backward;
    struct pml_owner *next; /* of the same line, or of the list of those whose code is gone */
};

/* Whether nothing asks for the bytes of the owner with this index any more. All devices are locked. */
typedef bool pml_owners_is_unused(int index);

/* A new owner; NULL when memory runs out. */
struct pml_owner *pml_owners_new(struct pml_code *code, int line, enum pml_owner_kind kind, struct pml_owner *around);
/* All owners of a line, by `next`, those that are too old for its pictures (before `since`) among them. */
static inline struct pml_owner *pml_owners_of_line(const struct pml_code *code, int line)
{
    unsigned i = (unsigned)line - (unsigned)code->owner_line;
    return i < (unsigned)code->owners ? code->owner[i] : NULL;
}
/* The first owner of a line's list that was made since a picture began; NULL if there is none. */
struct pml_owner *pml_owners_since(struct pml_owner *first, const struct pml_owner *around, uint64_t since);
/* An owner of a line's list that is older, but holds nothing that is: it counts as new from now on. All devices are
 * locked. */
struct pml_owner *pml_owners_renew(struct pml_owner *first, const struct pml_owner *around,
                                   pml_owners_is_unused *is_unused);

/* The line that a picture's group charges, or NULL. */
const struct pml_owner *pml_owners_resolve(const struct pml_owner *owner, int group, uint64_t since);

struct pml_owner *pml_owners_in_backward(struct pml_owner *owner);
extern struct pml_owner pml_owners_autograd;
/* The owner of what no line allocates. It holds nothing. */
extern struct pml_owner pml_owners_nobody;

/* A dense number from 1, given when it is first asked for; -1 when memory runs out. And back; NULL for a number not in
 * use. */
int pml_owners_index(struct pml_owner *owner);
struct pml_owner *pml_owners_by_index(int index);

static inline int pml_owners_number(struct pml_owner *owner)
{
    int index = atomic_load_explicit(&owner->index, memory_order_relaxed);
    return index >= 0 ? index : pml_owners_index(owner);
}

/* A code object is gone: its owners stay until they hold nothing. All devices are locked. */
void pml_owners_forget_code(struct pml_code *code, pml_owners_is_unused *is_unused);

void pml_owners_lock(void);
void pml_owners_unlock(void);

#endif
