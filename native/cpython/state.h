/* The extension module's state, and what its C files offer each other. Everything here needs the GIL. */
#ifndef PML_STATE_H
#define PML_STATE_H

#include "cpython/compat.h"

#include <stdbool.h>

#include "frames/frame_stack.h"
#include "holders/peak_picture.h"
#include "frames/segment.h"

typedef struct PmlHook PmlHook;
typedef struct PmlTracer PmlTracer;

/* PyTorch's statistics of accelerators: the callables, the columns wanted, and the peaks kept for the user. */
struct pml_statistics {
    PyObject *read;    /* device index -> nested dict */
    PyObject *reset;   /* device index -> None */
    PyObject *devices; /* () -> how many devices are in use; 0 before the first */
    PyObject *kept;    /* dict: device index -> nested dict of peaks that resets here have hidden */
    PyObject *columns; /* list of paths, by column id */
    bool only;         /* statistics instead of events */
    bool reading;
    bool failed;
    uint64_t sampled; /* ticks at the last sample */
    uint64_t looked;  /* ticks when it was last seen that nothing need be read, or all was */
    uint64_t invalidations; /* and touches */
};

struct pml_state {
    PyTypeObject *hook_type;
    PyTypeObject *entry_type;
    PyTypeObject *tracer_type;
    PyTypeObject *switch_type;
    PyTypeObject *window_block_type;
    PyTypeObject *peak_window_type;
    PyTypeObject *holders_type;
    PyTypeObject *storage_type;
    PyObject *hook_key;
    PmlHook *hooks;
    PmlTracer *tracers;
    int enabled; /* entries of profilers, which want every new thread followed */
    uint64_t forks; /* by which this process came about */
    struct pml_statistics statistics;
};

struct pml_state *pml_state_of(PyObject *module);

/* A device slot argument; -1 with an exception set when it is out of range. */
int pml_arguments_slot(PyObject *object);

/* hook.c: the trace function. One hook a thread. */
struct PmlHook {
    PyObject_HEAD
    struct pml_state *state;
    PmlHook *next;
    unsigned long thread;
    PyThreadState *python_thread; /* may be gone, unless `pml_hook_is_here` */
    int depth;   /* entries not left yet */
    int leaving; /* entries left by another thread: this thread takes its hook down at its next event */
    bool adopted; /* entered for a thread that started while a profiler was enabled */
    Py_tracefunc below; /* the tracer that was there, and is called after ours */
    PyObject *below_object;
    struct pml_frame_stack stack;
};

extern PyType_Spec pml_hook_spec;
PyObject *pml_hook_enter(struct pml_state *state);
void pml_hook_leave(PmlHook *hook);
int pml_hook_adopt(struct pml_state *state);
/* Whether another tracer has this thread's hook's place. False for hooks of other threads: that cannot be seen. */
bool pml_hook_displaced(const PmlHook *hook);
void pml_hook_after_fork(struct pml_state *state);

/* Whether the hook is that of the calling thread. */
static inline bool pml_hook_is_here(const PmlHook *hook)
{
    const PyThreadState *now = PyThreadState_Get();
    return now == hook->python_thread && now->thread_id == hook->thread;
}

/* Install the trace function; whatever tracer is there goes below it. */
void pml_hook_install(PmlHook *hook);
/* holders_type.c: who holds the peak, for one profiler or a group. */
typedef struct {
    PyObject_HEAD
    struct pml_peak_picture picture;
} PmlHolders;

extern PyType_Spec pml_holders_type_spec;

/* tracer.c: one profiler's counters. */
struct PmlTracer {
    PyObject_HEAD
    struct pml_state *state;
    PmlTracer *next;
    struct pml_recorder recorder;
    PmlHolders *holders; /* owned; or NULL */
    PyObject *codes; /* list, in the order added: keeps them alive */
    struct pml_subscriber **subscriber;
    int entries; /* how many enable it */
};

/* entry.c: what installs the hook as long as it lives. NULL with an exception set when memory runs out. */
PyObject *pml_entry_new(struct pml_state *state, PmlTracer *tracer);
PyObject *pml_enter(PyObject *module, PyObject *entries);
extern PyType_Spec pml_entry_spec;

/* with_blocks.c: bases of what a `with` statement enters. */
extern PyType_Spec pml_switch_spec;
extern PyType_Spec pml_window_block_spec;

/* growth_figures.c: a line's later runs on a device as a plain tuple, or None. A new reference. */
PyObject *pml_growth_figures_new(const struct pml_growth *growth, const void *code, int line, int device);

/* saved_figures.c: what autograd keeps. */
PyObject *pml_saved_figures_of_tracer(PyObject *tracer, PyObject *unused);
PyObject *pml_saved_figures_connect(PyObject *module, PyObject *args);
PyObject *pml_saved_figures_hooks_are_set(PyObject *module, PyObject *unused);
PyObject *pml_saved_figures_follow(PyObject *module, PyObject *follow);

extern PyType_Spec pml_tracer_spec;
void pml_recorders_interrupt(struct pml_state *state);
void pml_recorders_fail(struct pml_state *state);
/* Its recording lasts from the first of these to the last of those. */
void pml_tracer_enter(PmlTracer *tracer);
void pml_tracer_leave(PmlTracer *tracer);
void pml_tracer_after_fork(struct pml_state *state);

/* statistics.c: what events do not tell. */
void pml_statistics_sync(struct pml_state *state, bool sample);
PyObject *pml_statistics_connect(PyObject *module, PyObject *args);
PyObject *pml_statistics_only(PyObject *module, PyObject *flag);
PyObject *pml_statistics_add_column(PyObject *module, PyObject *args);
PyObject *pml_statistics_sample(PyObject *module, PyObject *unused);
PyObject *pml_statistics_kept(PyObject *module, PyObject *device);
PyObject *pml_statistics_forget(PyObject *module, PyObject *device);
PyObject *pml_statistics_merge_peaks(PyObject *module, PyObject *args);

/* peak_window.c */
extern PyType_Spec pml_peak_window_spec;

/* child_rss.c */
PyObject *pml_child_rss_run(PyObject *module, PyObject *args);

/* storage_walk.c */
PyObject *pml_storage_walk_instances(PyObject *module, PyObject *types);
PyObject *pml_storage_walk_try_each(PyObject *module, PyObject *args);
PyObject *pml_storage_walk_kinds(PyObject *module, PyObject *types);
PyObject *pml_storage_walk_find_answers(PyObject *module, PyObject *args);
PyObject *pml_storage_walk_sum_answers(PyObject *module, PyObject *args);

/* storage_type.c, storages.c: storages of live tensors. */
extern PyType_Spec pml_storage_type_spec;
PyObject *pml_storages_enter_tensors(PyObject *module, PyObject *args);
PyObject *pml_storages_count_once(PyObject *module, PyObject *storages);
PyObject *pml_storages_set_cpu_blocks(PyObject *module, PyObject *storages);
PyObject *pml_storages_sum(PyObject *module, PyObject *storages);
PyObject *pml_storages_largest_first(PyObject *module, PyObject *args);

/* gc_lists.c: a list of the objects whose type `wanted` accepts; NULL with an exception set. The collector must be off. */
PyObject *pml_gc_lists_select(bool (*wanted)(PyTypeObject *type, void *arg), void *arg);

#endif
