/* A map from addresses to values: open addressing, without marks of what was taken out. See addresses.h. */
#include "snapshot/addresses.h"

#include <stdlib.h>

static size_t home_of(uint64_t address, size_t mask)
{
    uint64_t mixed = (address >> 9 ^ address) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 20) & mask;
}

/* The slot of an address, or the free one where it would be. */
static size_t find(const struct pml_addresses *map, uint64_t address)
{
    size_t mask = map->count - 1, i = home_of(address, mask);
    while (map->slots[i].value && map->slots[i].address != address)
        i = (i + 1) & mask;
    return i;
}

static bool grow(struct pml_addresses *map)
{
    struct pml_addresses larger = {.count = map->count ? map->count * 2 : 256, .used = map->used};
    larger.slots = calloc(larger.count, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->count; i++)
        if (map->slots[i].value)
            larger.slots[find(&larger, map->slots[i].address)] = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

bool pml_addresses_set(struct pml_addresses *map, uint64_t address, uint64_t value)
{
    if (map->used * 2 >= map->count && !grow(map))
        return false;
    size_t i = find(map, address);
    map->used += !map->slots[i].value;
    map->slots[i] = (struct pml_address_slot){address, value + 1};
    return true;
}

bool pml_addresses_get(const struct pml_addresses *map, uint64_t address, uint64_t *value)
{
    if (!map->count)
        return false;
    const struct pml_address_slot *slot = &map->slots[find(map, address)];
    if (slot->value)
        *value = slot->value - 1;
    return slot->value != 0;
}

/* Move what follows a freed slot, so that no search ends there too early. */
static void close_gap(struct pml_addresses *map, size_t hole)
{
    size_t mask = map->count - 1;
    for (size_t i = (hole + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
        size_t home = home_of(map->slots[i].address, mask);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole].value = 0;
}

bool pml_addresses_take(struct pml_addresses *map, uint64_t address, uint64_t *value)
{
    if (!map->count)
        return false;
    size_t i = find(map, address);
    if (!map->slots[i].value)
        return false;
    *value = map->slots[i].value - 1;
    map->used--;
    close_gap(map, i);
    return true;
}

void pml_addresses_drop(struct pml_addresses *map)
{
    free(map->slots);
    *map = (struct pml_addresses){0};
}
