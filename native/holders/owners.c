/* Owners (see owners.h). */
#include "holders/owners.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lock_order.h"
#include "base/moment.h"
#include "holders/owner_bytes.h"

struct pml_owner pml_owners_autograd = {.kind = PML_OWNER_AUTOGRAD, .index = -1};
struct pml_owner pml_owners_nobody = {.index = 0};

static struct pml_owner *forgotten; /* their code is gone, they may hold bytes still */

static struct {
    pthread_mutex_t mutex;
    struct pml_owner **owner;
    int count; /* with 0, which is nobody's */
    int capacity;
} numbered = {.mutex = PTHREAD_MUTEX_INITIALIZER, .count = 1};

void pml_owners_lock(void)
{
    pml_lock_order_taken(PML_RANK_OWNERS, 0);
    pthread_mutex_lock(&numbered.mutex);
}

void pml_owners_unlock(void)
{
    pthread_mutex_unlock(&numbered.mutex);
    pml_lock_order_given(PML_RANK_OWNERS, 0);
}

struct pml_owner *pml_owners_new(struct pml_code *code, int line, enum pml_owner_kind kind, struct pml_owner *around)
{
    struct pml_owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    *owner = (struct pml_owner){.code = code, .line = line, .kind = kind, .index = -1, .around = around};
    owner->born = pml_moment_now();
    if (around)
        around->inner++;
    return owner;
}

/* ---- made with the GIL ---- */

static bool holds_nothing(const struct pml_owner *owner, pml_owners_is_unused *is_unused)
{
    const struct pml_owner *backward = owner->in_backward;
    return !owner->inner && (owner->index < 0 || is_unused(owner->index)) &&
           (!backward || backward->index < 0 || is_unused(backward->index));
}

static void take_for_new(struct pml_owner *owner)
{
    owner->born = pml_moment_now();
    pml_owner_bytes_renew(owner->index);
}

struct pml_owner *pml_owners_renew(struct pml_owner *first, const struct pml_owner *around,
                                   pml_owners_is_unused *is_unused)
{
    while (first && (first->around != around || !holds_nothing(first, is_unused)))
        first = first->next;
    if (first)
        take_for_new(first);
    if (first && first->in_backward)
        take_for_new(first->in_backward);
    return first;
}

struct pml_owner *pml_owners_since(struct pml_owner *first, const struct pml_owner *around, uint64_t since)
{
    while (first && (first->around != around || first->born < since))
        first = first->next;
    return first;
}

/* ---- any thread ---- */

const struct pml_owner *pml_owners_resolve(const struct pml_owner *owner, int group, uint64_t since)
{
    if (owner->kind == PML_OWNER_AUTOGRAD)
        return owner;
    while (owner && !(owner->code && pml_codes_groups(owner->code) >> group & 1))
        owner = owner->around;
    return owner && owner->born >= since ? owner : NULL;
}

struct pml_owner *pml_owners_in_backward(struct pml_owner *owner)
{
    pml_owners_lock();
    if (!owner->in_backward)
        owner->in_backward = pml_owners_new(owner->code, owner->line, PML_OWNER_BACKWARD, owner->around);
    struct pml_owner *backward = owner->in_backward;
    pml_owners_unlock();
    return backward;
}

static int free_index(void)
{
    for (int i = 1; i < numbered.count; i++)
        if (!numbered.owner[i])
            return i;
    return -1;
}

/* A number for one more owner; those of owners that went away are used again once there are no others. */
static int take_index(void)
{
    if (numbered.count < numbered.capacity)
        return numbered.count++;
    int index = free_index();
    if (index >= 0)
        return index;
    int capacity = numbered.capacity ? numbered.capacity * 2 : 64;
    struct pml_owner **grown = realloc(numbered.owner, (size_t)capacity * sizeof *grown);
    if (!grown)
        return -1;
    grown[0] = &pml_owners_nobody;
    numbered.owner = grown;
    numbered.capacity = capacity;
    return numbered.count++;
}

int pml_owners_index(struct pml_owner *owner)
{
    pml_owners_lock();
    if (owner->index < 0 && (owner->index = take_index()) >= 0)
        numbered.owner[owner->index] = owner;
    int index = owner->index;
    pml_owners_unlock();
    return index;
}

struct pml_owner *pml_owners_by_index(int index)
{
    pml_owners_lock();
    struct pml_owner *owner = index < numbered.count && numbered.owner ? numbered.owner[index] : NULL;
    pml_owners_unlock();
    return owner;
}

/* ---- going away ---- */

static void forget(struct pml_owner *owner)
{
    owner->code = NULL;
    owner->next = forgotten;
    forgotten = owner;
}

static void owner_free(struct pml_owner *owner)
{
    if (owner->around)
        owner->around->inner--;
    if (owner->index >= 0)
        numbered.owner[owner->index] = NULL;
    pml_owner_bytes_renew(owner->index);
    free(owner);
}

static bool sweep_once(pml_owners_is_unused *is_unused)
{
    bool any = false;
    for (struct pml_owner **link = &forgotten; *link;) {
        struct pml_owner *owner = *link;
        if (!holds_nothing(owner, is_unused)) {
            link = &owner->next;
            continue;
        }
        *link = owner->next;
        owner_free(owner);
        any = true;
    }
    return any;
}

static void sweep(pml_owners_is_unused *is_unused)
{
    pml_owners_lock();
    while (sweep_once(is_unused)) {
    }
    pml_owners_unlock();
}

void pml_owners_forget_code(struct pml_code *code, pml_owners_is_unused *is_unused)
{
    for (int i = 0; i < code->owners; i++)
        for (struct pml_owner *owner = code->owner[i], *next; owner; owner = next) {
            next = owner->next;
            if (owner->in_backward)
                forget(owner->in_backward);
            owner->in_backward = NULL;
            forget(owner);
        }
    free(code->owner);
    code->owner = NULL;
    code->owners = 0;
    sweep(is_unused);
}
