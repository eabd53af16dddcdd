/* Growing arrays, as the reader of memory snapshots uses them: a pointer, how many are used, how many there is room
 * for.
 *
 * Whoever has the struct owns the items and frees them. No locks: one thread uses one reader.
 */
#ifndef PML_VECTOR_H
#define PML_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A type of array: `PML_VECTOR(struct row) rows;` */
#define PML_VECTOR(type) \
    struct { \
        type *items; \
        size_t used; \
        size_t room; \
    }

/* Room for `need` items: doubled, so that adding one by one takes constant time. False: no memory. */
static inline bool pml_vector_room(void **items, size_t *room, size_t need, size_t size)
{
    size_t more = *room ? *room : 16;
    while (more < need)
        more += more / 2 + 16;
    if (more > SIZE_MAX / size)
        return false;
    void *grown = realloc(*items, more * size);
    if (!grown)
        return false;
    *items = grown;
    *room = more;
    return true;
}

/* Whether there is room for `count` more items. */
#define PML_RESERVE(vector, count) \
    ((vector)->used + (count) <= (vector)->room || \
     pml_vector_room((void **)&(vector)->items, &(vector)->room, (vector)->used + (count), sizeof *(vector)->items))

/* Add one item; false: no memory. */
#define PML_PUSH(vector, item) (PML_RESERVE(vector, 1) && ((vector)->items[(vector)->used++] = (item), true))

/* Free the items. */
#define PML_DROP(vector) (free((vector)->items), (vector)->items = NULL, (vector)->used = (vector)->room = 0)

#endif
