/* Free pieces of memory ordered by size, then by address. See gapset.h. */
#include "snapshot/gapset.h"

static bool is_below(const struct pml_gapset_node *node, uint64_t size, uint64_t start)
{
    return node->size < size || (node->size == size && node->start < start);
}

/* The last node before a place, on each level. */
static void find(const struct pml_gapset *set, uint64_t size, uint64_t start, uint32_t before[PML_GAPSET_HEIGHT])
{
    const struct pml_gapset_node *nodes = set->nodes.items;
    uint32_t node = 0;
    for (int level = PML_GAPSET_HEIGHT - 1; level >= 0; level--) {
        while (nodes[node].next[level] && is_below(&nodes[nodes[node].next[level]], size, start))
            node = nodes[node].next[level];
        before[level] = node;
    }
}

/* One more level for one node of four. */
static int height(struct pml_gapset *set)
{
    int levels = 1;
    set->random = set->random * 1664525u + 1013904223u;
    for (uint32_t bits = set->random >> 8; levels < PML_GAPSET_HEIGHT && !(bits & 3); bits >>= 2)
        levels++;
    return levels;
}

static bool new_node(struct pml_gapset *set, uint32_t *number)
{
    static const struct pml_gapset_node blank;
    if (!set->nodes.used && !PML_PUSH(&set->nodes, blank))
        return false;
    if (set->spare) {
        *number = set->spare;
        set->spare = set->nodes.items[*number].next[0];
        return true;
    }
    *number = (uint32_t)set->nodes.used;
    return set->nodes.used < UINT32_MAX && PML_PUSH(&set->nodes, blank);
}

bool pml_gapset_add(struct pml_gapset *set, uint64_t start, uint64_t size)
{
    uint32_t before[PML_GAPSET_HEIGHT], number;
    if (!new_node(set, &number))
        return false;
    find(set, size, start, before);
    struct pml_gapset_node *nodes = set->nodes.items;
    nodes[number] = (struct pml_gapset_node){.size = size, .start = start};
    for (int level = height(set) - 1; level >= 0; level--) {
        nodes[number].next[level] = nodes[before[level]].next[level];
        nodes[before[level]].next[level] = number;
    }
    return true;
}

bool pml_gapset_remove(struct pml_gapset *set, uint64_t start, uint64_t size)
{
    uint32_t before[PML_GAPSET_HEIGHT];
    if (!set->nodes.used)
        return false;
    find(set, size, start, before);
    struct pml_gapset_node *nodes = set->nodes.items;
    uint32_t number = nodes[before[0]].next[0];
    if (!number || nodes[number].size != size || nodes[number].start != start)
        return false;
    for (int level = 0; level < PML_GAPSET_HEIGHT && nodes[before[level]].next[level] == number; level++)
        nodes[before[level]].next[level] = nodes[number].next[level];
    nodes[number].next[0] = set->spare;
    set->spare = number;
    return true;
}

bool pml_gapset_find(const struct pml_gapset *set, uint64_t size, uint64_t *start, uint64_t *found)
{
    uint32_t before[PML_GAPSET_HEIGHT];
    if (!set->nodes.used)
        return false;
    find(set, size, 0, before);
    uint32_t number = set->nodes.items[before[0]].next[0];
    if (!number)
        return false;
    *start = set->nodes.items[number].start;
    *found = set->nodes.items[number].size;
    return true;
}

void pml_gapset_drop(struct pml_gapset *set)
{
    PML_DROP(&set->nodes);
    set->spare = 0;
}
