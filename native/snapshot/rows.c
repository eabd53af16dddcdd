/* What a memory snapshot holds, as compact columns. See rows.h. */
#include "snapshot/rows.h"

#include <string.h>

#define MOST_UNKNOWN 32
#define MOST_TEXTS ((1u << PML_SETTING_BITS) - (1u << 16))

static bool same_setting(const void *owner, uint32_t number, const void *what)
{
    const struct pml_setting *a = &((const struct pml_rows *)owner)->settings.items[number], *b = what;
    return a->stream == b->stream && a->pool[0] == b->pool[0] && a->pool[1] == b->pool[1] && a->context == b->context &&
           a->metadata == b->metadata;
}

static uint64_t hash_of(const struct pml_setting *setting)
{
    uint64_t hash = pml_index_hash(pml_index_hash(0, (uint64_t)setting->stream), (uint64_t)setting->pool[0]);
    return pml_index_hash(pml_index_hash(pml_index_hash(hash, (uint64_t)setting->pool[1]), setting->context),
                          setting->metadata);
}

bool pml_rows_init(struct pml_rows *rows)
{
    memset(rows, 0, sizeof *rows);
    return pml_names_init(&rows->names) && pml_stacks_init(&rows->stacks);
}

static uint32_t add_setting(struct pml_rows *rows, const struct pml_setting *setting, uint64_t hash)
{
    if (rows->settings.used >= (1u << PML_SETTING_BITS) - 1)
        return rows->last_setting;
    if (!PML_PUSH(&rows->settings, *setting))
        return PML_INDEX_NONE;
    uint32_t number = (uint32_t)rows->settings.used - 1;
    return pml_index_add(&rows->setting_index, hash, number) ? number : PML_INDEX_NONE;
}

uint32_t pml_rows_setting(struct pml_rows *rows, const struct pml_setting *setting)
{
    struct pml_setting wanted = *setting;
    if (rows->settings.used >= MOST_TEXTS) /* one text an event: the last ones are left out */
        wanted.context = wanted.metadata = PML_NAME_EMPTY;
    if (rows->settings.used && same_setting(rows, rows->last_setting, &wanted))
        return rows->last_setting;
    uint64_t hash = hash_of(&wanted);
    uint32_t found = pml_index_find(&rows->setting_index, hash, same_setting, rows, &wanted);
    if (found == PML_INDEX_NONE)
        found = add_setting(rows, &wanted, hash);
    if (found != PML_INDEX_NONE)
        rows->last_setting = found;
    return found;
}

bool pml_rows_note_unknown(struct pml_rows *rows, uint32_t name)
{
    for (size_t i = 0; i < rows->unknown.used; i++)
        if (rows->unknown.items[i] == name)
            return true;
    return rows->unknown.used >= MOST_UNKNOWN || PML_PUSH(&rows->unknown, name);
}

void pml_rows_drop(struct pml_rows *rows)
{
    pml_names_drop(&rows->names);
    pml_stacks_drop(&rows->stacks);
    PML_DROP(&rows->events);
    PML_DROP(&rows->blocks);
    PML_DROP(&rows->segments);
    PML_DROP(&rows->settings);
    PML_DROP(&rows->unknown);
    pml_index_drop(&rows->setting_index);
}
