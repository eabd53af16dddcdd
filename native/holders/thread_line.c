/* Which line each thread runs (see thread_line.h). */
#include "holders/thread_line.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/lock_order.h"

enum thread_kind { UNKNOWN, AUTOGRAD, OTHER };

static _Thread_local struct {
    struct pml_thread_line *thread_line;
    enum thread_kind kind;
    uint64_t changes; /* `pml_thread_line_changes` and `gone` when the next was looked up */
    uint64_t gone;
    struct pml_owner *waiting;
} here;

_Atomic uint64_t pml_thread_line_changes = 1;
static _Atomic uint64_t gone = 1; /* counts the entries that were freed */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pml_thread_line thread_lines = {.next = &thread_lines, .prev = &thread_lines};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_end;

void pml_thread_line_lock(void)
{
    pml_lock_order_taken(PML_RANK_THREAD_LINE, 0);
    pthread_mutex_lock(&mutex);
}

void pml_thread_line_unlock(void)
{
    pthread_mutex_unlock(&mutex);
    pml_lock_order_given(PML_RANK_THREAD_LINE, 0);
}

void pml_thread_line_release(struct pml_thread_line *thread_line)
{
    if (!thread_line)
        return;
    pml_thread_line_lock();
    bool last = --thread_line->references == 0;
    if (last) {
        thread_line->next->prev = thread_line->prev;
        thread_line->prev->next = thread_line->next;
        atomic_fetch_add_explicit(&gone, 1, memory_order_release);
    }
    pml_thread_line_unlock();
    if (last)
        free(thread_line);
}

static void leave_thread(void *thread_line)
{
    here.thread_line = NULL;
    pml_thread_line_release(thread_line);
}

static void make_key(void)
{
    pthread_key_create(&thread_end, leave_thread);
}

static struct pml_thread_line *thread_line_new(void)
{
    struct pml_thread_line *thread_line = calloc(1, sizeof *thread_line);
    if (!thread_line)
        return NULL;
    pthread_once(&once, make_key);
    if (pthread_setspecific(thread_end, thread_line)) {
        free(thread_line);
        return NULL;
    }
    pml_thread_line_lock();
    thread_line->references = 1;
    thread_line->next = thread_lines.next;
    thread_line->prev = &thread_lines;
    thread_lines.next->prev = thread_line;
    thread_lines.next = thread_line;
    pml_thread_line_unlock();
    return thread_line;
}

struct pml_thread_line *pml_thread_line_retain(void)
{
    if (!here.thread_line && !(here.thread_line = thread_line_new()))
        return NULL;
    pml_thread_line_lock();
    here.thread_line->references++;
    pml_thread_line_unlock();
    return here.thread_line;
}

/* PyTorch names the threads that run the backward pass of a device. */
static enum thread_kind kind_of_thread(void)
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
    pml_thread_line_lock();
    for (struct pml_thread_line *thread_line = thread_lines.next; thread_line != &thread_lines;
         thread_line = thread_line->next) {
        struct pml_owner *owner = atomic_load_explicit(&thread_line->owner, memory_order_acquire);
        if (owner)
            found = found ? &pml_owners_autograd : owner;
    }
    pml_thread_line_unlock();
    return found;
}

static struct pml_owner *find_waiting_line(void)
{
    struct pml_owner *owner = only_line();
    if (!owner || owner == &pml_owners_autograd)
        return owner;
    struct pml_owner *backward = pml_owners_in_backward(owner);
    return backward ? backward : owner;
}

/* Looked up again only after a change. An owner is freed only after its line was left, which is a change. */
static struct pml_owner *waiting_line(void)
{
    uint64_t changes = atomic_load_explicit(&pml_thread_line_changes, memory_order_acquire);
    uint64_t ends = atomic_load_explicit(&gone, memory_order_acquire);
    if (here.changes != changes || here.gone != ends) {
        here.waiting = find_waiting_line();
        here.changes = changes;
        here.gone = ends;
    }
    return here.waiting;
}

struct pml_owner *pml_thread_line_owner(void)
{
    struct pml_thread_line *thread_line = here.thread_line;
    struct pml_owner *owner = thread_line ? atomic_load_explicit(&thread_line->owner, memory_order_relaxed) : NULL;
    if (owner)
        return owner;
    if (here.kind == UNKNOWN)
        here.kind = kind_of_thread();
    return here.kind == AUTOGRAD ? waiting_line() : NULL;
}
