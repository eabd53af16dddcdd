/* Messages of the starter (child_starter.c) to the process that measures (child_rss.c), through a pipe. */
#ifndef PML_CHILD_START_H
#define PML_CHILD_START_H

enum pml_start_step {
    PML_START_PID,       /* value: the child's process id; sent before anything else is done in it */
    PML_START_SEPARATE,  /* value: errno; there is no child */
    PML_START_DIRECTORY, /* value: errno; the child ends */
    PML_START_EXECUTE,   /* value: errno; the child ends */
};

struct pml_start_report {
    int step;
    int value;
};

#endif
