/* The values of a pickle while it is read. See values.h. */
#include "snapshot/values.h"

#define LARGEST_INT ((INT64_C(1) << 59) - 1)

pml_value pml_values_container(struct pml_values *values, enum pml_kind empty, bool *failed)
{
    if (!PML_PUSH(&values->objects, pml_values_make(empty, 0)))
        *failed = true;
    return pml_values_make(PML_OBJECT, values->objects.used - 1);
}

pml_value pml_values_wide(struct pml_values *values, enum pml_tag tag, uint64_t bits, bool *failed)
{
    if (!PML_PUSH(&values->wide, bits))
        *failed = true;
    return pml_values_make(tag, values->wide.used - 1);
}

pml_value pml_values_integer(struct pml_values *values, int64_t integer, bool *failed)
{
    if (integer > LARGEST_INT || integer < -LARGEST_INT)
        return pml_values_wide(values, PML_WIDE, (uint64_t)integer, failed);
    return pml_values_make(PML_INT, (uint64_t)integer);
}

static bool same_pair(const void *owner, uint32_t number, const void *what)
{
    const struct pml_pair *a = &((const struct pml_values *)owner)->pairs.items[number], *b = what;
    return a->first == b->first && a->second == b->second;
}

pml_value pml_values_pair(struct pml_values *values, struct pml_pair pair, bool *failed)
{
    uint64_t hash = pml_index_hash(pml_index_hash(0, (uint64_t)pair.first), (uint64_t)pair.second);
    uint32_t found = pml_index_find(&values->pair_index, hash, same_pair, values, &pair);
    if (found == PML_INDEX_NONE) {
        found = (uint32_t)values->pairs.used;
        if (values->pairs.used >= UINT32_MAX - 1 || !PML_PUSH(&values->pairs, pair) ||
            !pml_index_add(&values->pair_index, hash, found))
            *failed = true;
    }
    return pml_values_make(PML_PAIR, found);
}

bool pml_values_as_integer(const struct pml_values *values, pml_value value, int64_t *integer)
{
    switch (pml_values_tag(value)) {
    case PML_INT: *integer = (int64_t)value >> PML_TAG_BITS; return true;
    case PML_BOOL: *integer = pml_values_payload(value) != 0; return true;
    case PML_WIDE: *integer = (int64_t)values->wide.items[pml_values_payload(value)]; return true;
    default: return false;
    }
}

enum pml_kind pml_values_kind(const struct pml_values *values, pml_value value, uint64_t *payload)
{
    if (pml_values_tag(value) != PML_OBJECT)
        return PML_EMPTY_LIST;
    uint64_t object = values->objects.items[pml_values_payload(value)];
    *payload = pml_values_payload(object);
    return (enum pml_kind)pml_values_tag(object);
}

void pml_values_become(struct pml_values *values, pml_value object, enum pml_kind kind, uint64_t payload)
{
    values->objects.items[pml_values_payload(object)] = pml_values_make(kind, payload);
}

const pml_items *pml_values_items(const struct pml_values *values, pml_value value, enum pml_kind kind)
{
    uint64_t payload = 0;
    if (pml_values_kind(values, value, &payload) != kind || (kind != PML_IS_LIST && kind != PML_IS_DICT))
        return NULL;
    return &values->items.items[payload];
}

void pml_values_drop(struct pml_values *values)
{
    for (size_t i = 0; i < values->items.used; i++)
        PML_DROP(&values->items.items[i]);
    PML_DROP(&values->objects);
    PML_DROP(&values->wide);
    PML_DROP(&values->pairs);
    PML_DROP(&values->ranges);
    PML_DROP(&values->items);
    pml_index_drop(&values->pair_index);
}
