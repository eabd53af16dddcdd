/* Seeing what autograd saves: the constructor of `torch::autograd::SavedVariable`, which PyTorch's libraries call
 * through their GOT, is led through a function here and then runs unchanged. So nothing that the program can see is
 * different: no saved-tensor hook is set, no tensor is copied, and in-place checks are PyTorch's own.
 *
 * No header of PyTorch is used. Where a tensor's storage and that one's memory are found in its objects is looked up in
 * sample tensors, whose addresses and sizes Python knows; if they are not found, nothing is followed.
 */
#ifndef PML_SAVED_EVENTS_H
#define PML_SAVED_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What Python says about a tensor of CPU memory. */
struct pml_saved_sample {
    const void *tensor;  /* Tensor._cdata */
    const void *storage; /* UntypedStorage._cdata */
    const void *memory;  /* UntypedStorage.data_ptr() */
    int64_t bytes;       /* UntypedStorage.nbytes() */
};

/* Find where things are; false unless all samples agree. */
bool pml_saved_events_learn(const struct pml_saved_sample *samples, int count);
/* Learn from a tensor that stands for another one: both are Tensor._cdata. False if that one is not found in it. */
bool pml_saved_events_learn_wrapper(const void *wrapper, const void *inside);
/* Whether the calling thread has saved-tensor hooks set; for Python to compare with what it knows. */
bool pml_saved_events_hooks_are_set(void);
/* Lead the constructors through here; false if they are not found, or nothing was learnt. */
bool pml_saved_events_install(void);

#endif
