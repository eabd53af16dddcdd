/* Tensors that stand for another one and have no memory of their own: those inside `torch.func` transforms.
 *
 * No header of PyTorch is used. A kind of wrapper is known by the first word of its objects, its C++ class's table of
 * functions; where it points to the tensor inside is looked up in a sample, for which Python knows both addresses.
 *
 * Threads: learning needs the GIL and comes before anything is followed; looking needs nothing.
 */
#ifndef PML_TENSOR_WRAPPERS_H
#define PML_TENSOR_WRAPPERS_H

#include <stdbool.h>

/* Learn one kind; false if the tensor inside is not found, or there are too many kinds. */
bool pml_tensor_wrappers_learn(const void *wrapper, const void *inside);
/* The handle of the tensor inside; NULL where `tensor` is no wrapper. Both belong to PyTorch. */
const void *pml_tensor_wrappers_inside(const void *tensor);

#endif
