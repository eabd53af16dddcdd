/* Code objects to subscribers (see codes.h): open addressing with tombstones, grown before it is half full. */
#include "lines/codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/pointer_hash.h"

uint64_t pml_codes_version = 1;

static const char removed; /* its address is the key of a slot whose entry was removed */

static struct {
    struct pml_code **slot;
    const void **key;
    size_t capacity;
    size_t filled; /* entries and tombstones */
    size_t entries;
} map;

static size_t home_of(const void *key)
{
    return pml_pointer_hash(key) & (map.capacity - 1);
}

static size_t probe(const void *key)
{
    size_t i = home_of(key);
    while (map.key[i] && map.key[i] != key)
        i = (i + 1) & (map.capacity - 1);
    return i;
}

struct pml_code *pml_codes_find(const void *key)
{
    if (map.capacity == 0)
        return NULL;
    size_t i = probe(key);
    return map.key[i] ? map.slot[i] : NULL;
}

static void move_entries(struct pml_code **slot, const void **key, size_t capacity)
{
    for (size_t i = 0; i < capacity; i++) {
        if (!key[i] || key[i] == &removed)
            continue;
        size_t to = probe(key[i]);
        map.key[to] = key[i];
        map.slot[to] = slot[i];
        map.filled++;
    }
}

static bool reserve(void)
{
    if (map.filled * 2 < map.capacity)
        return true;
    size_t capacity = map.capacity ? map.capacity : 64;
    if (map.entries * 4 >= capacity) /* else clearing the tombstones makes room enough */
        capacity *= 2;
    struct pml_code **slot = calloc(capacity, sizeof *slot);
    const void **key = calloc(capacity, sizeof *key);
    if (!slot || !key) {
        free(slot);
        free(key);
        return false;
    }
    struct pml_code **old_slot = map.slot;
    const void **old_key = map.key;
    size_t old_capacity = map.capacity;
    map.slot = slot;
    map.key = key;
    map.capacity = capacity;
    map.filled = 0;
    move_entries(old_slot, old_key, old_capacity);
    free(old_slot);
    free(old_key);
    return true;
}

static struct pml_code *insert(const void *key)
{
    if (!reserve())
        return NULL;
    struct pml_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    size_t i = probe(key);
    code->key = key;
    code->references = 1; /* the map's own */
    map.key[i] = key;
    map.slot[i] = code;
    map.filled++;
    map.entries++;
    return code;
}

static void regroup(struct pml_code *code)
{
    uint64_t groups = 0, since = 0;
    for (int i = 0; i < code->subscribers; i++) {
        const struct pml_recorder *recorder = code->subscriber[i]->recorder;
        if (!recorder || !recorder->recording || !recorder->group)
            continue;
        groups |= recorder->group;
        since = since < recorder->group_since ? recorder->group_since : since;
    }
    code->since = since;
    atomic_store_explicit(&code->groups, groups, memory_order_relaxed);
    pml_codes_version++;
}

bool pml_codes_recorded(const struct pml_code *code)
{
    for (int i = 0; i < code->subscribers; i++)
        if (code->subscriber[i]->recorder->recording)
            return true;
    return false;
}

void pml_codes_regroup(void)
{
    for (size_t i = 0; i < map.capacity; i++)
        if (map.slot[i])
            regroup(map.slot[i]);
}

static void erase(struct pml_code *code)
{
    size_t i = probe(code->key);
    map.key[i] = &removed;
    map.slot[i] = NULL;
    map.entries--;
    pml_codes_release(code);
}

bool pml_codes_subscribe(const void *key, struct pml_subscriber *subscriber)
{
    struct pml_code *code = pml_codes_find(key);
    if (!code && !(code = insert(key)))
        return false;
    size_t size = (size_t)(code->subscribers + 1) * sizeof *code->subscriber;
    struct pml_subscriber **grown = realloc(code->subscriber, size);
    if (!grown) {
        if (code->subscribers == 0)
            erase(code);
        return false;
    }
    code->subscriber = grown;
    code->subscriber[code->subscribers++] = subscriber;
    regroup(code);
    return true;
}

bool pml_codes_set_parts(const void *key, const struct pml_line_part *part, int parts)
{
    struct pml_code *code = pml_codes_find(key);
    if (!code || code->part || parts == 0)
        return true;
    code->part = malloc((size_t)parts * sizeof *part);
    if (!code->part)
        return false;
    memcpy(code->part, part, (size_t)parts * sizeof *part);
    code->parts = parts;
    return true;
}

void pml_codes_unsubscribe(const void *key, struct pml_subscriber *subscriber)
{
    struct pml_code *code = pml_codes_find(key);
    if (!code)
        return;
    int kept = 0;
    for (int i = 0; i < code->subscribers; i++)
        if (code->subscriber[i] != subscriber)
            code->subscriber[kept++] = code->subscriber[i];
    code->subscribers = kept;
    regroup(code);
    if (kept == 0)
        erase(code);
}

void pml_codes_release(struct pml_code *code)
{
    if (--code->references == 0) {
        if (code->forget)
            code->forget(code);
        free(code->subscriber);
        free(code->part);
        free(code);
    }
}
