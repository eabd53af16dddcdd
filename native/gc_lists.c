/* Visiting every object that the collector lists, where it is: `gc.get_objects()` would first write a reference to each of
 * them, which costs more than all else that a walk does.
 *
 * From Python 3.12 on the interpreter does it. Before, on 3.10 and 3.11, whose layout is final: each generation is a ring
 * of `struct gc_head`, one right before each object, and one head that has no object. The head is found once, before the
 * first object that `gc.get_objects(generation)` gives. Needs the GIL; nothing may allocate or free objects meanwhile.
 */
#include "state.h"

#if PML_GC_VISITS

int pml_gc_visit(int (*visit)(PyObject *object, void *arg), void *arg)
{
    PyUnstable_GC_VisitObjects(visit, arg);
    return 0;
}

#else

#define GENERATIONS 3
#define FLAGS ((uintptr_t)3) /* the lowest bits of both links are the collector's */

/* Where the next objects of a heap that was filled in order are likely to be: a ring is slow to follow otherwise. */
#define AHEAD 1024
#if defined(__GNUC__)
#define PML_PREFETCH(address) __builtin_prefetch(address)
#else
#define PML_PREFETCH(address) ((void)(address))
#endif

struct gc_head {
    uintptr_t next;
    uintptr_t before;
};

static struct gc_head *heads[GENERATIONS];

static struct gc_head *next_of(const struct gc_head *node)
{
    return (struct gc_head *)(node->next & ~FLAGS);
}

/* 0 also where the generation is empty: its head stays unknown. */
static int find_head(int generation)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *objects = gc ? PyObject_CallMethod(gc, "get_objects", "i", generation) : NULL;
    Py_XDECREF(gc);
    if (!objects)
        return -1;
    if (PyList_GET_SIZE(objects) > 0) {
        struct gc_head *first = (struct gc_head *)PyList_GET_ITEM(objects, 0) - 1;
        struct gc_head *head = (struct gc_head *)(first->before & ~FLAGS);
        heads[generation] = next_of(head) == first ? head : NULL;
    }
    Py_DECREF(objects);
    return 0;
}

static int visit_ring(struct gc_head *head, int (*visit)(PyObject *object, void *arg), void *arg)
{
    int more = 1;
    for (struct gc_head *node = next_of(head); more && node != head; node = next_of(node)) {
        PML_PREFETCH((char *)node + AHEAD);
        more = visit((PyObject *)(node + 1), arg);
    }
    return more;
}

int pml_gc_visit(int (*visit)(PyObject *object, void *arg), void *arg)
{
    for (int i = 0; i < GENERATIONS; i++)
        if (!heads[i] && find_head(i) < 0)
            return -1;
    int more = 1;
    for (int i = GENERATIONS - 1; more && i >= 0; i--)
        more = heads[i] ? visit_ring(heads[i], visit, arg) : 1;
    return 0;
}

#endif
