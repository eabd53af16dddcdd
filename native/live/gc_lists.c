/* Visiting every object that the collector keeps, where it is: `gc.get_objects()` would first write a reference to each
 * of them, which costs more than all else that a walk does, and leaves out what `gc.freeze` has set aside (Python 3.12
 * does that itself as it starts, servers with the weights of their models).
 *
 * Up to Python 3.13, whose layout is final, each generation is a ring of `struct gc_head`, one right before each
 * object, and one head that has no object; the heads of all generations are adjacent. A new object is the last of the
 * youngest ring, and so next to the head of that. Later versions are asked. Needs the GIL; no object may be allocated
 * or freed during the walk.
 *
 * Each object holds the link to the next one, so a walk along a ring waits for memory at each step. The walk therefore
 * starts at many points, and takes a step at each of them in turn, and fetches ahead. Measured among a million objects
 * (Python 3.11, medians): 4.8 ms a walk; without fetching ahead 6.6, with one chain a ring 6.1, without both 8.5.
 */
#include "live/gc_lists.h"

/* Objects found; no references. */
struct object_vector {
    PyObject **items;
    Py_ssize_t count, room;
};

static bool vector_grow(struct object_vector *object_vector)
{
    Py_ssize_t room = object_vector->room ? 2 * object_vector->room : 256;
    PyObject **items = PyMem_RawRealloc(object_vector->items, (size_t)room * sizeof *items);
    if (!items)
        return false;
    object_vector->items = items;
    object_vector->room = room;
    return true;
}

#define PASSED 1024

struct selection {
    bool (*wanted)(PyTypeObject *type, void *arg);
    void *arg;
    PyTypeObject *passed[PASSED]; /* types that are not wanted, by their address */
};

static inline PyTypeObject **slot_of(struct selection *selection, PyTypeObject *type)
{
    return &selection->passed[((uintptr_t)type >> 4 ^ (uintptr_t)type >> 14) % PASSED];
}

static inline bool take(struct selection *selection, PyObject *object, struct object_vector *object_vector)
{
    PyTypeObject *type = Py_TYPE(object);
    PyTypeObject **passed = slot_of(selection, type);
    if (type == *passed)
        return true;
    if (!selection->wanted(type, selection->arg)) {
        *passed = type;
        return true;
    }
    if (object_vector->count == object_vector->room && !vector_grow(object_vector))
        return false;
    object_vector->items[object_vector->count++] = object;
    return true;
}

/* Fill a list from the place `at` on. Returns the place behind. */
static Py_ssize_t put_forward(PyObject *list, Py_ssize_t at, const struct object_vector *object_vector)
{
    for (Py_ssize_t i = 0; i < object_vector->count; i++)
        PyList_SET_ITEM(list, at + i, Py_NewRef(object_vector->items[i]));
    return at + object_vector->count;
}

#if PML_GC_VISITS

struct visiting {
    struct selection *selection;
    struct object_vector object_vector;
    bool failed;
};

static int visit(PyObject *object, void *arg)
{
    struct visiting *v = arg;
    v->failed = v->failed || !take(v->selection, object, &v->object_vector);
    return !v->failed;
}

static PyObject *select_all(struct selection *selection)
{
    struct visiting v = {.selection = selection};
    PyUnstable_GC_VisitObjects(visit, &v);
    PyObject *found = v.failed ? PyErr_NoMemory() : PyList_New(v.object_vector.count);
    if (found)
        put_forward(found, 0, &v.object_vector);
    PyMem_RawFree(v.object_vector.items);
    return found;
}

#else

#define GENERATIONS 3
#define RINGS (GENERATIONS + 1)
#define FLAGS ((uintptr_t)3) /* the lowest bits of both links are the collector's */

/* Where the next objects of a heap that was filled in order are likely to be. */
#define AHEAD 1024
#if defined(__GNUC__)
#define PML_PREFETCH(address) __builtin_prefetch(address)
#else
#define PML_PREFETCH(address) ((void)(address))
#endif

/* Chains: one from the head of each ring, and one from each of some modules, which lie all over what was imported. */
#define MODULES 32
#define CHAINS (RINGS + MODULES)
#define NOWHERE (-1)

struct gc_head {
    uintptr_t next;
    uintptr_t before;
};

struct ring {
    struct gc_head head;
    int threshold;
    int count;
};

/* As in the interpreter's state. */
struct rings {
    struct ring generation[GENERATIONS];
    struct ring *youngest;
    struct ring frozen;
    Py_ssize_t statistics[GENERATIONS][3];
    int collecting;
};

struct chain {
    struct gc_head *at; /* the object to come */
    struct object_vector found;
    struct object_vector behind; /* what is found backwards from the end of the ring */
    int end;                     /* the chain whose beginning it came to; NOWHERE before that */
};

/* A walk. Chain i < RINGS begins at the head of ring i, the others at the objects of `module`. */
struct walk {
    struct selection selection;
    struct rings *rings;
    struct chain chain[CHAINS];
    int chains;
    struct gc_head *module[CHAINS];
};

static struct gc_head *next_of(const struct gc_head *node)
{
    return (struct gc_head *)(node->next & ~FLAGS);
}

static struct gc_head *before(const struct gc_head *node)
{
    return (struct gc_head *)(node->before & ~FLAGS);
}

static PyObject *object_of(const struct gc_head *node)
{
    return (PyObject *)(node + 1);
}

static bool is_ring(const struct ring *ring)
{
    return before(next_of(&ring->head)) == &ring->head && next_of(before(&ring->head)) == &ring->head;
}

static struct rings *find_rings(void)
{
    PyObject *newest = PyList_New(0);
    if (!newest)
        return NULL;
    struct rings *rings = (struct rings *)next_of((struct gc_head *)newest - 1);
    Py_DECREF(newest);
    if (rings->youngest == rings->generation && is_ring(rings->youngest) && is_ring(&rings->frozen))
        return rings;
    PyErr_SetString(PyExc_RuntimeError,
                    "the objects of this build of Python cannot be found: its collector is another one");
    return NULL;
}

/* The frozen first, then from the oldest to the youngest: the order of what is found. */
static const struct ring *ring_at(const struct walk *walk, int i)
{
    return i == 0 ? &walk->rings->frozen : &walk->rings->generation[GENERATIONS - i];
}

/* The node that a chain begins at: the head of a ring, or a module. */
static const struct gc_head *beginning(const struct walk *walk, int chain)
{
    return chain < RINGS ? &ring_at(walk, chain)->head : walk->module[chain];
}

static int module_at(const struct walk *walk, const struct gc_head *node)
{
    for (int i = RINGS; i < walk->chains; i++)
        if (walk->module[i] == node)
            return i;
    return NOWHERE;
}

/* Which chain begins here. Most objects are recognised by their type. */
static inline int begins(const struct walk *walk, const struct gc_head *node)
{
    if ((uintptr_t)node - (uintptr_t)walk->rings < sizeof *walk->rings) {
        for (int i = 0; i < RINGS; i++)
            if (node == &ring_at(walk, i)->head)
                return i;
    }
    return PyModule_CheckExact(object_of(node)) ? module_at(walk, node) : NOWHERE;
}

/* Modules spread evenly over those imported. While a collection runs, objects lie in other rings too, so there are
 * none. */
static void choose_modules(struct walk *walk)
{
    PyObject *modules = PyImport_GetModuleDict(), *module; /* borrowed */
    if (walk->rings->collecting || !modules || !PyDict_CheckExact(modules))
        return;
    Py_ssize_t every = PyDict_GET_SIZE(modules) / (MODULES + 1) + 1, slot = 0;
    for (Py_ssize_t i = 1; PyDict_Next(modules, &slot, NULL, &module) && walk->chains < CHAINS; i++) {
        if (i % every || !PyModule_CheckExact(module) || !PyObject_GC_IsTracked(module))
            continue;
        struct gc_head *node = (struct gc_head *)module - 1;
        if (module_at(walk, node) == NOWHERE)
            walk->module[walk->chains++] = node;
    }
}

/* Prefetches what the chain needs at its next turn. */
static inline bool step(struct walk *walk, struct chain *chain)
{
    struct gc_head *node = chain->at;
    chain->at = next_of(node);
    PML_PREFETCH(chain->at);
    PML_PREFETCH(&object_of(chain->at)->ob_type);
    PML_PREFETCH((char *)node + AHEAD);
    return take(&walk->selection, object_of(node), &chain->found);
}

/* Begin all chains: `open` is those that have not come to an end. Returns how many, or -1. */
static int begin(struct walk *walk, struct chain *open[CHAINS])
{
    int count = 0;
    for (int i = 0; i < walk->chains; i++) {
        struct chain *chain = open[count++] = &walk->chain[i];
        chain->end = NOWHERE;
        chain->at = i < RINGS ? next_of(beginning(walk, i)) : walk->module[i];
        if (i >= RINGS && !step(walk, chain))
            return -1;
    }
    return count;
}

/* A step of each chain in turn, until at most one is left. Returns how many, or -1. */
static int walk_all(struct walk *walk, struct chain *open[CHAINS], int count)
{
    while (count > 1) {
        for (int i = 0; i < count; i++) {
            struct chain *chain = open[i];
            if ((chain->end = begins(walk, chain->at)) != NOWHERE)
                open[i--] = open[--count];
            else if (!step(walk, chain))
                return -1;
        }
    }
    return count;
}

/* Where no chain has come to yet, when one is open: each beginning is the end of one chain. */
static int last_end(const struct walk *walk)
{
    int left = walk->chains * (walk->chains - 1) / 2;
    for (int i = 0; i < walk->chains; i++)
        left -= walk->chain[i].end != NOWHERE ? walk->chain[i].end : 0;
    return left;
}

/* The last chain, from both ends at once. */
static bool walk_rest(struct walk *walk, struct chain *chain)
{
    chain->end = last_end(walk);
    const struct gc_head *end = beginning(walk, chain->end);
    struct gc_head *last = before(end);
    while (chain->at != end) {
        struct gc_head *first = chain->at;
        PML_PREFETCH((char *)last - AHEAD);
        if (!step(walk, chain))
            return false;
        if (first == last)
            break;
        if (!take(&walk->selection, object_of(last), &chain->behind))
            return false;
        if (chain->at == last)
            break;
        last = before(last);
    }
    return true;
}

static Py_ssize_t put_backward(PyObject *list, Py_ssize_t at, const struct object_vector *object_vector)
{
    for (Py_ssize_t i = 0; i < object_vector->count; i++)
        PyList_SET_ITEM(list, at + i, Py_NewRef(object_vector->items[object_vector->count - 1 - i]));
    return at + object_vector->count;
}

/* A list in the order of the rings. */
static PyObject *join(const struct walk *walk)
{
    Py_ssize_t all = 0, at = 0;
    for (int i = 0; i < walk->chains; i++)
        all += walk->chain[i].found.count + walk->chain[i].behind.count;
    PyObject *list = PyList_New(all);
    for (int i = 0; list && i < RINGS; i++) {
        int slot = i;
        do {
            const struct chain *chain = &walk->chain[slot];
            at = put_forward(list, at, &chain->found);
            at = put_backward(list, at, &chain->behind);
            slot = chain->end;
        } while (slot >= RINGS);
    }
    return list;
}

static PyObject *walk_rings(struct walk *walk)
{
    struct chain *open[CHAINS];
    choose_modules(walk);
    int count = begin(walk, open);
    if (count > 0)
        count = walk_all(walk, open, count);
    if (count < 0 || (count > 0 && !walk_rest(walk, open[0])))
        return PyErr_NoMemory();
    return join(walk);
}

static PyObject *select_all(struct selection *selection)
{
    struct walk walk = {.selection = *selection, .rings = find_rings(), .chains = RINGS};
    PyObject *found = walk.rings ? walk_rings(&walk) : NULL;
    for (int i = 0; i < walk.chains; i++) {
        PyMem_RawFree(walk.chain[i].found.items);
        PyMem_RawFree(walk.chain[i].behind.items);
    }
    return found;
}

#endif

PyObject *pml_gc_lists_select(bool (*wanted)(PyTypeObject *type, void *arg), void *arg)
{
    struct selection selection = {.wanted = wanted, .arg = arg};
    return select_all(&selection);
}
