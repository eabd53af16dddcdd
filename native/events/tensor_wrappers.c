/* The kinds of wrappers that were learned (see tensor_wrappers.h). */
#include "events/tensor_wrappers.h"

#include <stddef.h>

#include "base/torch_abi.h"

#define MOST_KINDS 8

static struct kind {
    const void *functions;
    size_t inside_at; /* in words */
} kinds[MOST_KINDS];
static int known;

static const struct kind *kind_of(const void *tensor)
{
    for (int i = 0; i < known; i++)
        if (kinds[i].functions == pml_torch_abi_word(tensor, 0))
            return &kinds[i];
    return NULL;
}

bool pml_tensor_wrappers_learn(const void *wrapper, const void *inside)
{
    const struct kind *kind = kind_of(wrapper);
    if (kind)
        return pml_torch_abi_word(wrapper, kind->inside_at) == inside;
    for (size_t at = 1; at < PML_TORCH_WRAPPER_WORDS_SEARCHED && known < MOST_KINDS; at++)
        if (pml_torch_abi_word(wrapper, at) == inside) {
            kinds[known++] = (struct kind){pml_torch_abi_word(wrapper, 0), at};
            return true;
        }
    return false;
}

const void *pml_tensor_wrappers_inside(const void *tensor)
{
    const struct kind *kind = kind_of(tensor);
    return kind ? (const void *const *)tensor + kind->inside_at : NULL;
}
