/* A map from addresses to small numbers (see pointer_map.h): open addressing, at most three quarters full. */
#include "base/pointer_map.h"

#include <stdlib.h>

#define FIRST_CAPACITY 1024

bool pml_pointer_map_grow(struct pml_pointer_map *map)
{
    size_t capacity = map->capacity ? 2 * map->capacity : FIRST_CAPACITY;
    struct pml_pointer_map larger = {.slots = calloc(capacity, sizeof *larger.slots), .capacity = capacity};
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].pointer)
            *pml_pointer_map_place(&larger, map->slots[i].pointer) = map->slots[i];
    larger.used = map->used;
    free(map->slots);
    *map = larger;
    return true;
}

void pml_pointer_map_free(struct pml_pointer_map *map)
{
    free(map->slots);
    *map = (struct pml_pointer_map){.slots = NULL};
}
