/* The list of recorders (see recorders.h). */
#include "lines/recorders.h"

#include <stddef.h>

static struct pml_recorder *recorders;

void pml_recorders_add(struct pml_recorder *recorder)
{
    recorder->next = recorders;
    recorders = recorder;
}

void pml_recorders_remove(struct pml_recorder *recorder)
{
    struct pml_recorder **link = &recorders;
    while (*link && *link != recorder)
        link = &(*link)->next;
    if (*link)
        *link = recorder->next;
}

void pml_recorders_interrupt(void)
{
    for (struct pml_recorder *recorder = recorders; recorder; recorder = recorder->next)
        recorder->interrupted |= recorder->recording;
}

void pml_recorders_fail(void)
{
    for (struct pml_recorder *recorder = recorders; recorder; recorder = recorder->next)
        recorder->failed |= recorder->recording;
}
