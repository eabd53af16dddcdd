/* A map from addresses to small numbers that only grows: what a walk knows of each object. Owns its table; it knows
 * nothing of what the addresses point to. No locks: one thread at a time.
 */
#ifndef PML_POINTER_MAP_H
#define PML_POINTER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pointer_hash.h"

struct pml_pointer_map_slot {
    const void *pointer; /* NULL: free */
    uint32_t value;
};

/* All zeros is an empty map. */
struct pml_pointer_map {
    struct pml_pointer_map_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
};

/* Makes room for one more. False: no memory, and the map is as it was. */
bool pml_pointer_map_grow(struct pml_pointer_map *map);
void pml_pointer_map_free(struct pml_pointer_map *map);

/* The slot of a pointer, or the free one where it belongs. The map must have room for one more. */
static inline struct pml_pointer_map_slot *pml_pointer_map_place(const struct pml_pointer_map *map, const void *pointer)
{
    size_t mask = map->capacity - 1;
    size_t i = pml_pointer_hash(pointer) & mask;
    while (map->slots[i].pointer && map->slots[i].pointer != pointer)
        i = (i + 1) & mask;
    return &map->slots[i];
}

/* The value of a pointer, to be read or changed; NULL if it is not there. */
static inline uint32_t *pml_pointer_map_find(const struct pml_pointer_map *map, const void *pointer)
{
    struct pml_pointer_map_slot *slot = map->capacity ? pml_pointer_map_place(map, pointer) : NULL;
    return slot && slot->pointer ? &slot->value : NULL;
}

/* The value of a pointer, which is entered with 0 if it is not there. NULL: no memory. The address is good until the
 * next one is entered. */
static inline uint32_t *pml_pointer_map_enter(struct pml_pointer_map *map, const void *pointer)
{
    if (map->used >= map->capacity / 4 * 3 && !pml_pointer_map_grow(map))
        return NULL;
    struct pml_pointer_map_slot *slot = pml_pointer_map_place(map, pointer);
    if (!slot->pointer) {
        slot->pointer = pointer;
        map->used++;
    }
    return &slot->value;
}

#endif
