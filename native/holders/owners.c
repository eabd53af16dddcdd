/* Owners (see owners.h). */
#include "holders/owners.h"

#include <pthread.h>
#include <stdlib.h>

#include "holders/ledger.h"
#include "lock_order.h"

PML_READ_MOSTLY uint64_t pml_codes_version = 1;
PML_READ_MOSTLY _Atomic uint64_t pml_owners_serial = 1;
PML_READ_MOSTLY bool pml_charge_failed;
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

/* A picture's number is published with the picture itself. */
static uint64_t serial_now(void)
{
    return atomic_load_explicit(&pml_owners_serial, memory_order_relaxed);
}

static struct pml_owner *owner_new(struct pml_code *code, int line, enum pml_owner_kind kind, struct pml_owner *around)
{
    struct pml_owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    *owner = (struct pml_owner){.code = code, .line = line, .kind = kind, .index = -1, .around = around};
    owner->born = serial_now();
    if (around)
        around->inner++;
    return owner;
}

/* ---- made with the GIL ---- */

/* The array of a code's owners, as long as the tables of its lines. */
static bool cover_lines(struct pml_code *code)
{
    const struct pml_line_table *table = code->subscribers ? code->subscriber[0]->table : NULL;
    if (code->owner || !table)
        return code->owner;
    code->owner = calloc((size_t)table->lines, sizeof *code->owner);
    if (code->owner) {
        code->owner_line = table->first_line;
        code->owners = table->lines;
    } else {
        pml_charge_failed = true;
    }
    return code->owner;
}

static bool holds_nothing(const struct pml_owner *owner)
{
    const struct pml_owner *backward = owner->in_backward;
    return !owner->inner && (owner->index < 0 || pml_picture_recording_unused(owner->index)) &&
           (!backward || backward->index < 0 || pml_picture_recording_unused(backward->index));
}

/* An owner of the line that is too old for a picture, but holds nothing that is: it is taken for new. */
static struct pml_owner *renew(struct pml_owner *first, const struct pml_owner *around)
{
    pml_ledger_lock_all();
    while (first && (first->around != around || !holds_nothing(first)))
        first = first->next;
    if (first)
        first->born = serial_now();
    if (first && first->in_backward)
        first->in_backward->born = serial_now();
    pml_ledger_unlock_all();
    return first;
}

static struct pml_owner *young_enough(struct pml_owner *first, const struct pml_owner *around, uint64_t since)
{
    while (first && (first->around != around || first->born < since))
        first = first->next;
    return first;
}

static void put_first(struct pml_owner **list, struct pml_owner *owner)
{
    for (struct pml_owner **link = list; *link; link = &(*link)->next)
        if (*link == owner) {
            *link = owner->next;
            break;
        }
    owner->next = *list;
    *list = owner;
}

struct pml_owner *pml_charge_intern(struct pml_code *code, int line, struct pml_owner *around)
{
    if (!cover_lines(code))
        return NULL;
    unsigned i = (unsigned)line - (unsigned)code->owner_line;
    if (i >= (unsigned)code->owners)
        return NULL;
    struct pml_owner *owner = young_enough(code->owner[i], around, code->since);
    if (!owner && code->owner[i])
        owner = renew(code->owner[i], around);
    if (!owner)
        owner = owner_new(code, line, PML_OWNER_LINE, around);
    if (owner)
        put_first(&code->owner[i], owner);
    else
        pml_charge_failed = true;
    return owner;
}

static uint64_t groups_of(const struct pml_code *code)
{
    return code ? atomic_load_explicit(&code->groups, memory_order_relaxed) : 0;
}

struct pml_owner *pml_charge_outside(struct pml_owner *owner, uint64_t groups)
{
    if (!owner)
        return NULL;
    uint64_t own = groups_of(owner->code);
    struct pml_owner *around = pml_charge_outside(owner->around, groups | own);
    if (!(own & ~groups))
        return around;
    return around == owner->around ? owner : pml_charge_at(owner->code, owner->line, around);
}

/* ---- any thread ---- */

const struct pml_owner *pml_owners_resolve(const struct pml_owner *owner, int group, uint64_t since)
{
    if (owner->kind == PML_OWNER_AUTOGRAD)
        return owner;
    while (owner && !(groups_of(owner->code) >> group & 1))
        owner = owner->around;
    return owner && owner->born >= since ? owner : NULL;
}

struct pml_owner *pml_owners_in_backward(struct pml_owner *owner)
{
    pml_owners_lock();
    if (!owner->in_backward)
        owner->in_backward = owner_new(owner->code, owner->line, PML_OWNER_BACKWARD, owner->around);
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
    free(owner);
}

static bool sweep_once(void)
{
    bool any = false;
    for (struct pml_owner **link = &forgotten; *link;) {
        struct pml_owner *owner = *link;
        if (!holds_nothing(owner)) {
            link = &owner->next;
            continue;
        }
        *link = owner->next;
        owner_free(owner);
        any = true;
    }
    return any;
}

static void sweep(void)
{
    pml_owners_lock();
    while (sweep_once()) {
    }
    pml_owners_unlock();
}

void pml_owners_forget_code(struct pml_code *code)
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
    sweep();
}
