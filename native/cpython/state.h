/* The extension module's state, one of each process. Everything in it needs the GIL. */
#ifndef PML_STATE_H
#define PML_STATE_H

#include "cpython/compat.h"

#include <stdbool.h>
#include <stdint.h>

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
    uint64_t sampled;       /* ticks at the last sample */
    uint64_t looked;        /* ticks when it was last seen that nothing need be read, or all was */
    uint64_t invalidations; /* and touches */
};

enum pml_monitoring_function {
    PML_GET_TOOL,
    PML_USE_TOOL_ID,
    PML_SET_EVENTS,
    PML_SET_LOCAL_EVENTS,
    PML_FREE_TOOL_ID,
    PML_REGISTER_CALLBACK,
    PML_MONITORING_FUNCTIONS,
};

/* Our tool of sys.monitoring (trace/monitoring_tool.h). */
struct pml_monitoring {
    PyObject *function[PML_MONITORING_FUNCTIONS];
    PyObject *name;       /* our tool's */
    PyObject *registered; /* list: the numbers of events that have callbacks */
    PyObject *module;     /* sys.monitoring; NULL where it is not used */
    PyObject *disable;    /* sys.monitoring.DISABLE */
    PyObject *owner;      /* borrowed: this extension module */
    int tool;             /* our tool id; 0: none */
    int watched;          /* code objects with events */
    long events[2];       /* for all code; of the watched code objects */
    bool refused;         /* the trace function is used instead, */
    bool crowded;         /* for no tool id was free */
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
    int enabled;    /* entries of profilers, which want every new thread followed */
    uint64_t forks; /* by which this process came about */
    struct pml_statistics statistics;
    struct pml_monitoring monitoring;
};

struct pml_state *pml_state_of(PyObject *module);

/* Make the state's own objects. -1 with an exception set. */
int pml_state_begin(PyObject *module);
int pml_state_traverse(PyObject *module, visitproc visit, void *arg);
int pml_state_clear(PyObject *module);

#endif
