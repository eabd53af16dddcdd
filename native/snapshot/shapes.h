/* What the dicts and lists of a pickle become: rows, frames and stacks where they have the form. */
#ifndef PML_SHAPES_H
#define PML_SHAPES_H

#include "snapshot/reading.h"

/* Give keys and values to a dict; more items to a list; make a tuple. */
enum pml_trouble pml_shapes_pairs(struct pml_pickle *pickle, pml_value dict, const pml_value *pairs, size_t count);
enum pml_trouble pml_shapes_append(struct pml_pickle *pickle, pml_value list, const pml_value *items, size_t count);
enum pml_trouble pml_shapes_tuple(struct pml_pickle *pickle, const pml_value *items, size_t count, pml_value *tuple);

#endif
