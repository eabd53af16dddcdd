/* Visiting every object that the collector keeps, where it is: `gc.get_objects()` would first write a reference to each of
 * them, which costs more than all else that a walk does, and leaves out what `gc.freeze` has set aside (Python 3.12 does
 * that itself as it starts, servers with the weights of their models).
 *
 * Up to Python 3.13, whose layout is final, each generation is a ring of `struct gc_head`, one right before each object,
 * and one head that has no object; the heads of all generations stand together. A new object is the last of the youngest
 * ring, and so next to the head of that. Later versions are asked. Needs the GIL; nothing may allocate or free objects
 * meanwhile.
 */
#include "state.h"

struct selection {
    bool (*wanted)(PyTypeObject *type, void *arg);
    void *arg;
    PyObject *found;  /* list */
    PyObject *behind; /* list: what is found from the end of a ring */
    PyTypeObject *passed; /* the last type that was not wanted: most objects follow one of their kind */
};

static inline bool take(struct selection *selection, PyObject *object, PyObject *list)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type == selection->passed)
        return true;
    if (!selection->wanted(type, selection->arg)) {
        selection->passed = type;
        return true;
    }
    bool own = object == selection->found || object == selection->behind; /* a list would keep itself alive */
    return own || PyList_Append(list, object) == 0;
}

#if PML_GC_VISITS

static int visit(PyObject *object, void *arg)
{
    struct selection *selection = arg;
    return take(selection, object, selection->found);
}

static int select_all(struct selection *selection)
{
    PyUnstable_GC_VisitObjects(visit, selection);
    return PyErr_Occurred() ? -1 : 0;
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
};

static struct gc_head *next_of(const struct gc_head *node)
{
    return (struct gc_head *)(node->next & ~FLAGS);
}

static struct gc_head *before(const struct gc_head *node)
{
    return (struct gc_head *)(node->before & ~FLAGS);
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
    PyErr_SetString(PyExc_RuntimeError, "the objects of this build of Python cannot be found: its collector is another one");
    return NULL;
}

/* From both ends at once, so that the processor waits for two objects at a time. */
static bool walk_ring(const struct ring *ring, struct selection *selection)
{
    struct gc_head *first = next_of(&ring->head), *last = before(&ring->head);
    bool more = first != &ring->head;
    while (more) {
        PML_PREFETCH((char *)first + AHEAD);
        PML_PREFETCH((char *)last - AHEAD);
        if (!take(selection, (PyObject *)(first + 1), selection->found))
            return false;
        if (first != last && !take(selection, (PyObject *)(last + 1), selection->behind))
            return false;
        more = first != last && next_of(first) != last;
        first = next_of(first);
        last = before(last);
    }
    return true;
}

/* The order is the ring's again. */
static bool join(struct selection *selection)
{
    Py_ssize_t end = PyList_GET_SIZE(selection->found);
    return PyList_Reverse(selection->behind) == 0 &&
           PyList_SetSlice(selection->found, end, end, selection->behind) == 0 &&
           PyList_SetSlice(selection->behind, 0, PY_SSIZE_T_MAX, NULL) == 0;
}

static int select_all(struct selection *selection)
{
    struct rings *rings = find_rings();
    bool right = rings && walk_ring(&rings->frozen, selection) && join(selection);
    for (int i = GENERATIONS - 1; right && i >= 0; i--)
        right = walk_ring(&rings->generation[i], selection) && join(selection);
    return right ? 0 : -1;
}

#endif

int pml_gc_select(bool (*wanted)(PyTypeObject *type, void *arg), void *arg, PyObject *found)
{
    struct selection selection = {wanted, arg, found, PyList_New(0), NULL};
    int failed = selection.behind ? select_all(&selection) : -1;
    Py_XDECREF(selection.behind);
    return failed;
}
