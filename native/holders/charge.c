/* The owner of the line that runs (see charge.h). */
#include "holders/charge.h"

#include <stdlib.h>

#include "holders/active_pictures.h"
#include "holders/ledger.h"
#include "holders/owner_bytes.h"

bool pml_charge_failed;

static bool is_unused(int index)
{
    for (int d = 0; d < PML_MAX_DEVICES; d++) {
        if (pml_owner_bytes_live(pml_owner_bytes_of(d, index)))
            return false;
        for (uint64_t left = pml_active_pictures_groups(); left;) {
            const struct pml_peak *peak = pml_active_pictures_next(&left)->device[d];
            if (peak && !peak->kept && pml_peak_picture_bytes(peak, index, 0))
                return false;
        }
    }
    return true;
}

static void forget_code(struct pml_code *code)
{
    if (!code->owner)
        return;
    pml_ledger_lock_all();
    pml_owners_forget_code(code, is_unused);
    pml_ledger_unlock_all();
}

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
        code->forget = forget_code;
    } else {
        pml_charge_failed = true;
    }
    return code->owner;
}

static struct pml_owner *renew(struct pml_owner *first, const struct pml_owner *around)
{
    pml_ledger_lock_all();
    struct pml_owner *renewed = pml_owners_renew(first, around, is_unused);
    pml_ledger_unlock_all();
    return renewed;
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
    struct pml_owner *owner = pml_owners_since(code->owner[i], around, code->since);
    if (!owner && code->owner[i])
        owner = renew(code->owner[i], around);
    if (!owner)
        owner = pml_owners_new(code, line, PML_OWNER_LINE, around);
    if (owner)
        put_first(&code->owner[i], owner);
    else
        pml_charge_failed = true;
    return owner;
}

struct pml_owner *pml_charge_outside(struct pml_owner *owner, uint64_t groups)
{
    if (!owner)
        return NULL;
    uint64_t own = owner->code ? pml_codes_groups(owner->code) : 0;
    struct pml_owner *around = pml_charge_outside(owner->around, groups | own);
    if (!(own & ~groups))
        return around;
    return around == owner->around ? owner : pml_charge_at(owner->code, owner->line, around);
}
