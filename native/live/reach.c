/* A walk forward over the objects that others hold (see reach.h).
 *
 * An object's type is looked behind last: all objects of a kind lead to what its class holds, and none of them is why
 * that lives.
 */
#include "live/reach.h"

#include <stdlib.h>

/* A way back to the target itself is none; it is not looked for further up than this. */
#define LONGEST_CYCLE 1000
/* Ways seen to a target, of which those through the target itself are not kept. */
#define SEEN_FOR_ONE 4

static bool add_node(struct pml_reach_nodes *nodes, PyObject *object, uint32_t parent)
{
    if (nodes->count == nodes->room) {
        uint32_t room = nodes->room ? 2 * nodes->room : 1024;
        struct pml_reach_node *items = realloc(nodes->items, room * sizeof *items);
        if (!items)
            return false;
        nodes->items = items;
        nodes->room = room;
    }
    nodes->items[nodes->count++] = (struct pml_reach_node){object, parent};
    return true;
}

static bool add_way(struct pml_reach *reach, PyObject *target, uint32_t node)
{
    if (reach->ways_count == reach->ways_room) {
        uint32_t room = reach->ways_room ? 2 * reach->ways_room : 64;
        struct pml_reach_way *ways = realloc(reach->ways, room * sizeof *ways);
        if (!ways)
            return false;
        reach->ways = ways;
        reach->ways_room = room;
    }
    reach->ways[reach->ways_count++] = (struct pml_reach_way){target, node};
    return true;
}

static bool leads_through(const struct pml_reach *reach, uint32_t node, const PyObject *target)
{
    for (int i = 0; i < LONGEST_CYCLE && node != PML_REACH_ROOT; i++) {
        if (reach->nodes.items[node].object == target)
            return true;
        node = reach->nodes.items[node].parent;
    }
    return false;
}

/* A holder that has the target twice is one way. */
static bool is_last_way(const struct pml_reach *reach, const PyObject *target, uint32_t node)
{
    const struct pml_reach_way *last = reach->ways_count ? &reach->ways[reach->ways_count - 1] : NULL;
    return last && last->target == target && last->node == node;
}

/* A target was come to from `holder`; it is a root itself where that is PML_REACH_ROOT, and its node is the next one.
 */
static bool note_way(struct pml_reach *reach, PyObject *target, uint32_t holder)
{
    uint32_t *count = pml_pointer_map_enter(&reach->counts, target);
    if (!count)
        return false;
    uint32_t seen = *count, node = holder == PML_REACH_ROOT ? reach->nodes.count : holder;
    if (seen / SEEN_FOR_ONE >= reach->most || is_last_way(reach, target, node))
        return true;
    ++*count;
    if (seen && holder != PML_REACH_ROOT && leads_through(reach, holder, target))
        return true;
    return add_way(reach, target, node);
}

/* Whether a way to an object is to be noted. A root that is given twice is one. */
static bool is_wanted(uint32_t known, uint32_t parent)
{
    return known & PML_REACH_TARGET && !(parent == PML_REACH_ROOT && known & PML_REACH_SEEN);
}

static bool is_postponed(uint32_t known, bool later)
{
    return (later || known & PML_REACH_LATER) && !(known & PML_REACH_TARGET);
}

/* Come to an object from a node, or from nowhere. */
static bool come_to(struct pml_reach *reach, PyObject *object, uint32_t parent, bool later)
{
    bool holds = pml_reach_holds_others(object);
    if (!holds && !reach->plain)
        return true;
    uint32_t *known =
        holds ? pml_pointer_map_enter(&reach->known, object) : pml_pointer_map_find(&reach->known, object);
    if (!known)
        return !holds;
    uint32_t before = *known;
    if (is_wanted(before, parent) && !note_way(reach, object, parent))
        return false;
    if (before & PML_REACH_SEEN || (before & PML_REACH_KEPT && parent != PML_REACH_ROOT))
        return true;
    *known |= PML_REACH_SEEN;
    return add_node(is_postponed(before, later) ? &reach->postponed : &reach->nodes, object, parent);
}

static int visit(PyObject *object, void *arg)
{
    struct pml_reach *reach = arg;
    uint32_t parent = reach->next - 1;
    PyObject *holder = reach->nodes.items[parent].object;
    reach->failed = reach->failed || !come_to(reach, object, parent, object == (PyObject *)Py_TYPE(holder));
    return reach->failed;
}

/* What was postponed comes now. */
static bool resume_postponed(struct pml_reach *reach)
{
    uint32_t count = reach->postponed.count;
    reach->postponed.count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!add_node(&reach->nodes, reach->postponed.items[i].object, reach->postponed.items[i].parent))
            return false;
    return true;
}

static bool look_behind(struct pml_reach *reach)
{
    PyObject *object = reach->nodes.items[reach->next++].object;
    if (pml_reach_holds_others(object))
        Py_TYPE(object)->tp_traverse(object, visit, reach);
    return !reach->failed;
}

static bool walk_all(struct pml_reach *reach)
{
    for (;;) {
        if (reach->next == reach->nodes.count && !resume_postponed(reach))
            return false;
        if (reach->next == reach->nodes.count || reach->nodes.count >= reach->limit)
            return true;
        if (!look_behind(reach))
            return false;
    }
}

bool pml_reach_mark(struct pml_reach *reach, PyObject *list, uint32_t bits)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *object = PyList_GET_ITEM(list, i);
        uint32_t *known = pml_pointer_map_enter(&reach->known, object);
        if (!known)
            return false;
        *known |= bits;
        reach->plain = reach->plain || (bits & PML_REACH_TARGET && !pml_reach_holds_others(object));
    }
    return true;
}

bool pml_reach_walk(struct pml_reach *reach, PyObject *roots)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots); i++)
        if (!come_to(reach, PyList_GET_ITEM(roots, i), PML_REACH_ROOT, false))
            return false;
    return walk_all(reach);
}

bool pml_reach_misses(const struct pml_reach *reach, PyObject *targets)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); i++)
        if (!pml_pointer_map_find(&reach->counts, PyList_GET_ITEM(targets, i)))
            return true;
    return false;
}

void pml_reach_close(struct pml_reach *reach)
{
    for (size_t i = 0; i < reach->counts.capacity; i++)
        if (reach->counts.slots[i].pointer)
            reach->counts.slots[i].value = UINT32_MAX;
}

void pml_reach_free(struct pml_reach *reach)
{
    pml_pointer_map_free(&reach->known);
    pml_pointer_map_free(&reach->counts);
    free(reach->nodes.items);
    free(reach->postponed.items);
    free(reach->ways);
}
