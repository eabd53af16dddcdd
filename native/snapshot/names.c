/* The strings of a snapshot, each kept once. See names.h. */
#include "snapshot/names.h"

#include <string.h>

struct text {
    const char *start;
    size_t length;
};

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = length;
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = pml_index_hash(hash, word);
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    return pml_index_hash(hash, rest);
}

static bool same_text(const void *owner, uint32_t number, const void *what)
{
    const struct pml_names *names = owner;
    const struct text *text = what;
    const struct pml_names_entry *entry = &names->entries.items[number];
    return entry->length == text->length && !memcmp(names->text.items + entry->start, text->start, text->length);
}

uint32_t pml_names_intern(struct pml_names *names, const char *text, size_t length)
{
    uint64_t hash = hash_of(text, length);
    struct text what = {text, length};
    uint32_t found = pml_index_find(&names->index, hash, same_text, names, &what);
    if (found != PML_INDEX_NONE)
        return found;
    uint32_t number = (uint32_t)names->entries.used;
    struct pml_names_entry entry = {names->text.used, (uint32_t)length};
    if (names->entries.used >= UINT32_MAX - 1 || !PML_RESERVE(&names->text, length + 1) ||
        !PML_PUSH(&names->entries, entry))
        return PML_INDEX_NONE;
    if (!pml_index_add(&names->index, hash, number)) {
        names->entries.used--;
        return PML_INDEX_NONE;
    }
    memcpy(names->text.items + names->text.used, text, length);
    names->text.used += length;
    return number;
}

#define TEXT(name, text) text,

bool pml_names_init(struct pml_names *names)
{
    static const char *const known[] = {PML_NAMES_KEYS(TEXT) PML_NAMES_VALUES(TEXT) ""};
    *names = (struct pml_names){0};
    for (uint32_t i = 0; i < PML_NAMES_KNOWN; i++)
        if (pml_names_intern(names, known[i], strlen(known[i])) != i)
            return false;
    return true;
}

const char *pml_names_text(const struct pml_names *names, uint32_t number, size_t *length)
{
    if (number >= names->entries.used)
        number = PML_NAME_EMPTY;
    *length = names->entries.items[number].length;
    return names->text.items + names->entries.items[number].start;
}

bool pml_names_is(const struct pml_names *names, uint32_t number, const char *text)
{
    size_t length;
    const char *found = pml_names_text(names, number, &length);
    return length == strlen(text) && !memcmp(found, text, length);
}

void pml_names_drop(struct pml_names *names)
{
    PML_DROP(&names->text);
    PML_DROP(&names->entries);
    pml_index_drop(&names->index);
}
