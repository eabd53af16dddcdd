/* Places (see places.h). */
#include "places.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "lock_order.h"

enum thread_kind { UNKNOWN, AUTOGRAD, OTHER };

static _Thread_local struct {
    struct pml_place *place;
    enum thread_kind kind;
    uint64_t changes; /* `pml_places_changes` and `gone` when the next was looked up */
    uint64_t gone;
    struct pml_owner *waiting;
} here;

PML_CHANGED_OFTEN _Atomic uint64_t pml_places_changes = 1;
PML_READ_OFTEN static _Atomic uint64_t gone = 1; /* counts the places that went away */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pml_place places = {.next = &places, .prev = &places};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_end;

void pml_places_lock(void)
{
    pml_lock_order_taken(PML_RANK_PLACES, 0);
    pthread_mutex_lock(&mutex);
}

void pml_places_unlock(void)
{
    pthread_mutex_unlock(&mutex);
    pml_lock_order_given(PML_RANK_PLACES, 0);
}

void pml_place_release(struct pml_place *place)
{
    if (!place)
        return;
    pml_places_lock();
    bool last = --place->references == 0;
    if (last) {
        place->next->prev = place->prev;
        place->prev->next = place->next;
        atomic_fetch_add_explicit(&gone, 1, memory_order_release);
    }
    pml_places_unlock();
    if (last)
        free(place);
}

static void leave_thread(void *place)
{
    here.place = NULL;
    pml_place_release(place);
}

static void make_key(void)
{
    pthread_key_create(&thread_end, leave_thread);
}

static struct pml_place *place_new(void)
{
    struct pml_place *place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    pthread_once(&once, make_key);
    if (pthread_setspecific(thread_end, place)) {
        free(place);
        return NULL;
    }
    pml_places_lock();
    place->references = 1;
    place->next = places.next;
    place->prev = &places;
    places.next->prev = place;
    places.next = place;
    pml_places_unlock();
    return place;
}

struct pml_place *pml_place_retain(void)
{
    if (!here.place && !(here.place = place_new()))
        return NULL;
    pml_places_lock();
    here.place->references++;
    pml_places_unlock();
    return here.place;
}

/* PyTorch names the threads that run the backward pass of a device. */
PML_SELDOM static enum thread_kind kind_of_thread(void)
{
#ifdef __linux__
    static const char prefix[] = "pt_autograd_";
    char name[17] = "";
    if (prctl(PR_GET_NAME, name) == 0 && strncmp(name, prefix, sizeof prefix - 1) == 0)
        return AUTOGRAD;
#endif
    return OTHER;
}

/* The only line that some thread runs; the common owner if there are several; NULL if there is none. */
static struct pml_owner *only_line(void)
{
    struct pml_owner *found = NULL;
    pml_places_lock();
    for (struct pml_place *place = places.next; place != &places; place = place->next) {
        struct pml_owner *owner = atomic_load_explicit(&place->owner, memory_order_acquire);
        if (owner)
            found = found ? &pml_owner_autograd : owner;
    }
    pml_places_unlock();
    return found;
}

PML_SELDOM static struct pml_owner *find_waiting_line(void)
{
    struct pml_owner *owner = only_line();
    if (!owner || owner == &pml_owner_autograd)
        return owner;
    struct pml_owner *backward = pml_owner_in_backward(owner);
    return backward ? backward : owner;
}

/* While nothing changes it stays the same line. An owner goes away only after its line has been left, which is a change. */
struct pml_owner *pml_place_waiting_line(void)
{
    uint64_t changes = atomic_load_explicit(&pml_places_changes, memory_order_acquire);
    uint64_t ends = atomic_load_explicit(&gone, memory_order_acquire);
    if (here.changes != changes || here.gone != ends) {
        here.waiting = find_waiting_line();
        here.changes = changes;
        here.gone = ends;
    }
    return here.waiting;
}

PML_OFTEN struct pml_owner *pml_place_line(bool *waits)
{
    struct pml_place *place = here.place;
    struct pml_owner *owner = place ? atomic_load_explicit(&place->owner, memory_order_relaxed) : NULL;
    if (!owner && here.kind == UNKNOWN)
        here.kind = kind_of_thread();
    *waits = !owner && here.kind == AUTOGRAD;
    return owner;
}

struct pml_owner *pml_place_owner(void)
{
    bool waits;
    struct pml_owner *owner = pml_place_line(&waits);
    return waits ? pml_place_waiting_line() : owner;
}
