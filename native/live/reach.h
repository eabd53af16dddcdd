/* A walk forward over the objects that others hold, breadth first: the first way to each object is a shortest one.
 *
 * Only `tp_traverse` is called, as the collector does: no code of the program runs, and no reference is taken. So no
 * object may be freed while the walk is in use. Needs the GIL throughout; owns its tables.
 */
#ifndef PML_REACH_H
#define PML_REACH_H

#include "base/pointer_map.h"
#include "cpython/compat.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of an object, as bits. */
#define PML_REACH_SEEN 1u   /* the walk has been there, or must not go there */
#define PML_REACH_TARGET 2u /* the ways to it are wanted */
#define PML_REACH_LATER 4u  /* nothing is looked for behind it while there is something else */
#define PML_REACH_KEPT 8u   /* a root of a later walk: no way leads through it before */

#define PML_REACH_ROOT UINT32_MAX

struct pml_reach_node {
    PyObject *object; /* borrowed */
    uint32_t parent;  /* a node before this one, or PML_REACH_ROOT */
};

struct pml_reach_nodes {
    struct pml_reach_node *items;
    uint32_t count, room;
};

/* A way to a target: from a node that holds it, or the target's own node where it is a root. */
struct pml_reach_way {
    PyObject *target; /* borrowed */
    uint32_t node;
};

struct pml_reach {
    struct pml_pointer_map known;  /* object to bits */
    struct pml_pointer_map counts; /* target to how many ways were seen */
    struct pml_reach_nodes nodes, postponed;
    struct pml_reach_way *ways;
    uint32_t ways_count, ways_room;
    uint32_t most;  /* ways to one target */
    uint32_t limit; /* nodes */
    uint32_t next;  /* the node to look behind */
    bool plain;     /* whether some target is of a kind that the collector does not know */
    bool failed;    /* no memory */
};

/* Sets bits of all objects of a list. False: no memory. */
bool pml_reach_mark(struct pml_reach *reach, PyObject *list, uint32_t bits);
/* Walks from roots, a list, in their order, until nothing is left or the limit is reached. False: no memory. */
bool pml_reach_walk(struct pml_reach *reach, PyObject *roots);
/* Whether some target of the list has no way to it. */
bool pml_reach_misses(const struct pml_reach *reach, PyObject *targets);
/* No more ways are kept to targets that have one. */
void pml_reach_close(struct pml_reach *reach);
void pml_reach_free(struct pml_reach *reach);

/* Whether the collector knows objects of this kind, and so what they hold. */
static inline bool pml_reach_holds_others(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return type->tp_flags & Py_TPFLAGS_HAVE_GC && type->tp_traverse && (!type->tp_is_gc || type->tp_is_gc(object));
}

#endif
