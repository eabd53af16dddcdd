/* Which chains of Python objects hold given ones, the targets: what names the keeper of a tensor.
 *
 * One walk forward from roots (see reach.c), instead of a search for what refers to each target. The ways to the
 * targets share most of their objects, so they come back as one tree. What is not found from the roots is then looked
 * for among the objects that no root leads to (see unreached.c). Needs the GIL.
 */
#include "live/chains.h"

#include "cpython/named_tuples.h"
#include "live/unreached.h"

struct request {
    PyObject *targets, *groups, *ours, *later; /* borrowed: lists, `groups` a tuple of lists */
};

static PyStructSequence_Field chains_fields[] = {
    {"objects", "of all chains, each behind what holds it"},
    {"parents", "for each of them the index of what holds it; -1 - n for a root of group n"},
    {"holders", "for each target the indices of what holds it, or of itself as a root, the nearest to a root first"},
    {"walked", "how many objects were looked at"},
    {NULL, NULL},
};
static struct pml_named_tuple chains_kind =
    PML_NAMED_TUPLE("Chains", "The objects that hold others, as a tree.", chains_fields);

int pml_chains_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &chains_kind);
}

/* ---- the walk ---- */

/* The lists given hold the targets, and are no answer. */
static bool mark_given(struct pml_reach *reach, const struct request *request)
{
    PyObject *given = PyList_New(0);
    PyObject *lists[] = {request->targets, request->ours, request->later};
    bool done = given != NULL;
    for (size_t i = 0; done && i < sizeof lists / sizeof *lists; i++)
        done = PyList_Append(given, lists[i]) == 0;
    for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(request->groups); i++)
        done = PyList_Append(given, PyTuple_GET_ITEM(request->groups, i)) == 0;
    done = done && pml_reach_mark(reach, given, PML_REACH_SEEN);
    Py_XDECREF(given);
    return done;
}

static bool mark_all(struct pml_reach *reach, const struct request *request)
{
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(request->groups); i++)
        if (!pml_reach_mark(reach, PyTuple_GET_ITEM(request->groups, i), PML_REACH_KEPT))
            return false;
    return mark_given(reach, request) && pml_reach_mark(reach, request->targets, PML_REACH_TARGET) &&
           pml_reach_mark(reach, request->ours, PML_REACH_SEEN) &&
           pml_reach_mark(reach, request->later, PML_REACH_LATER);
}

/* Where the nodes of each group begin, and those that are found besides. */
struct begins {
    Py_ssize_t groups;
    uint32_t *at;
};

static bool walk_given(struct pml_reach *reach, const struct request *request, struct begins *begins)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(request->groups); i++) {
        begins->at[begins->groups++] = reach->nodes.count;
        if (!pml_reach_walk(reach, PyTuple_GET_ITEM(request->groups, i)))
            return false;
    }
    return true;
}

/* Returns what must live as long as the walk is used; NULL with an exception set. */
static PyObject *walk_others(struct pml_reach *reach, const struct request *request, struct begins *begins)
{
    if (reach->nodes.count >= reach->limit || !pml_reach_misses(reach, request->targets))
        return Py_NewRef(Py_None);
    pml_reach_close(reach);
    PyObject *lists = pml_unreached_find(reach, request->ours);
    for (Py_ssize_t i = 0; lists && i < PyTuple_GET_SIZE(lists); i++) {
        begins->at[begins->groups++] = reach->nodes.count;
        if (!pml_reach_walk(reach, PyTuple_GET_ITEM(lists, i))) {
            Py_CLEAR(lists);
            PyErr_NoMemory();
        }
    }
    return lists;
}

/* ---- the result ---- */

#define UNUSED UINT32_MAX

/* Numbers the nodes of all ways in their order: holders come before what they hold. Returns how many. */
static Py_ssize_t number_used(const struct pml_reach *reach, uint32_t *number)
{
    for (uint32_t i = 0; i < reach->nodes.count; i++)
        number[i] = UNUSED;
    for (uint32_t i = 0; i < reach->ways_count; i++)
        for (uint32_t node = reach->ways[i].node; node != PML_REACH_ROOT && number[node] == UNUSED;
             node = reach->nodes.items[node].parent)
            number[node] = 0;
    Py_ssize_t used = 0;
    for (uint32_t i = 0; i < reach->nodes.count; i++)
        if (number[i] != UNUSED)
            number[i] = (uint32_t)used++;
    return used;
}

static Py_ssize_t group_of(const struct begins *begins, uint32_t node)
{
    Py_ssize_t group = begins->groups - 1;
    while (group > 0 && begins->at[group] > node)
        group--;
    return group;
}

static Py_ssize_t parent_of(const struct pml_reach *reach, const struct begins *begins, const uint32_t *number,
                            uint32_t node)
{
    uint32_t parent = reach->nodes.items[node].parent;
    return parent == PML_REACH_ROOT ? -1 - group_of(begins, node) : (Py_ssize_t)number[parent];
}

static int fill_tree(const struct pml_reach *reach, const struct begins *begins, const uint32_t *number,
                     PyObject *objects, PyObject *parents)
{
    for (uint32_t i = 0; i < reach->nodes.count; i++) {
        if (number[i] == UNUSED)
            continue;
        PyObject *parent = PyLong_FromSsize_t(parent_of(reach, begins, number, i));
        if (!parent)
            return -1;
        PyList_SET_ITEM(parents, number[i], parent);
        PyList_SET_ITEM(objects, number[i], Py_NewRef(reach->nodes.items[i].object));
    }
    return 0;
}

/* The index of the list that a target's holders are in. */
static int number_targets(struct pml_pointer_map *index, PyObject *targets, PyObject *holders)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(targets); i++) {
        uint32_t *at = pml_pointer_map_enter(index, PyList_GET_ITEM(targets, i));
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        *at = *at ? *at : (uint32_t)i + 1;
        PyObject *list = *at == (uint32_t)i + 1 ? PyList_New(0) : Py_NewRef(PyList_GET_ITEM(holders, *at - 1));
        if (!list)
            return -1;
        PyList_SET_ITEM(holders, i, list);
    }
    return 0;
}

static int fill_holders(const struct pml_reach *reach, const struct pml_pointer_map *index, const uint32_t *number,
                        PyObject *holders)
{
    for (uint32_t i = 0; i < reach->ways_count; i++) {
        const struct pml_reach_way *way = &reach->ways[i];
        PyObject *list = PyList_GET_ITEM(holders, *pml_pointer_map_find(index, way->target) - 1);
        if (PyList_GET_SIZE(list) >= (Py_ssize_t)reach->most)
            continue;
        PyObject *at = PyLong_FromUnsignedLong(number[way->node]);
        int failed = at ? PyList_Append(list, at) : -1;
        Py_XDECREF(at);
        if (failed)
            return -1;
    }
    return 0;
}

static int fill_all(const struct pml_reach *reach, const struct begins *begins, const uint32_t *number,
                    PyObject *targets, PyObject *objects, PyObject *parents, PyObject *holders)
{
    struct pml_pointer_map index = {.slots = NULL};
    int failed = fill_tree(reach, begins, number, objects, parents) < 0 ||
                 number_targets(&index, targets, holders) < 0 || fill_holders(reach, &index, number, holders) < 0;
    pml_pointer_map_free(&index);
    return failed ? -1 : 0;
}

static PyObject *build(const struct pml_reach *reach, const struct begins *begins, PyObject *targets)
{
    uint32_t *number = PyMem_RawMalloc(((size_t)reach->nodes.count + 1) * sizeof *number);
    if (!number)
        return PyErr_NoMemory();
    Py_ssize_t used = number_used(reach, number);
    PyObject *objects = PyList_New(used), *parents = PyList_New(used);
    PyObject *holders = PyList_New(PyList_GET_SIZE(targets)), *result = NULL;
    if (objects && parents && holders && fill_all(reach, begins, number, targets, objects, parents, holders) == 0)
        result = pml_named_tuples_build(&chains_kind, "(OOOI)", objects, parents, holders, reach->nodes.count);
    Py_XDECREF(objects);
    Py_XDECREF(parents);
    Py_XDECREF(holders);
    PyMem_RawFree(number);
    return result;
}

/* ---- called by Python ---- */

static PyObject *find(struct pml_reach *reach, const struct request *request)
{
    struct begins begins = {
        .at = PyMem_RawCalloc((size_t)PyTuple_GET_SIZE(request->groups) + PML_UNREACHED_LISTS, sizeof *begins.at)};
    PyObject *result = NULL;
    if (begins.at && mark_all(reach, request) && walk_given(reach, request, &begins)) {
        PyObject *alive = walk_others(reach, request, &begins);
        result = alive ? build(reach, &begins, request->targets) : NULL;
        Py_XDECREF(alive);
    } else {
        PyErr_NoMemory();
    }
    PyMem_RawFree(begins.at);
    return result;
}

static bool are_lists(PyObject *groups)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(groups); i++) {
        if (PyList_CheckExact(PyTuple_GET_ITEM(groups, i)))
            continue;
        PyErr_SetString(PyExc_TypeError, "find_chains() needs groups of roots that are lists");
        return false;
    }
    return true;
}

/* find_chains(targets, groups, ours, later, most, limit) -> Chains. `targets`, `ours`, `later`: lists; `groups`: a
 * tuple of lists of roots, each walked to its end before the next. No way leads through the objects of `ours`, through
 * roots of a later group, or, while there is something else, those of `later`. `most`: ways to one target; `limit`:
 * objects looked at. What no group leads to is looked for from two more: what is held from outside of the collector's
 * objects, and garbage. */
PyObject *pml_chains_find(PyObject *module, PyObject *args)
{
    struct request request;
    struct pml_reach reach = {.next = 0};
    if (!PyArg_ParseTuple(args, "O!O!O!O!II:find_chains", &PyList_Type, &request.targets, &PyTuple_Type,
                          &request.groups, &PyList_Type, &request.ours, &PyList_Type, &request.later, &reach.most,
                          &reach.limit) ||
        !are_lists(request.groups))
        return NULL;
    int collecting = PyGC_Disable(); /* nothing may be freed during the walk */
    PyObject *result = find(&reach, &request);
    if (collecting)
        PyGC_Enable();
    pml_reach_free(&reach);
    return result;
}
