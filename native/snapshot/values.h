/* The values of a pickle while it is read: 8 bytes each, and the containers that they refer to.
 *
 * A container becomes what it holds as soon as that is known: a dict with the keys of an event is a row of the events,
 * a list of such dicts is a range of rows. So a trace of millions of events never exists as objects. Owned by the
 * reader.
 */
#ifndef PML_VALUES_H
#define PML_VALUES_H

#include "snapshot/index.h"
#include "snapshot/vector.h"

typedef uint64_t pml_value;

enum pml_tag { PML_NONE, PML_BOOL, PML_INT, PML_WIDE, PML_REAL, PML_STRING, PML_PAIR, PML_OBJECT };

/* What an object has become. Empty ones may still become anything. */
enum pml_kind {
    PML_EMPTY_LIST,
    PML_EMPTY_DICT,
    PML_IS_EVENT,
    PML_IS_BLOCK,
    PML_IS_SEGMENT,
    PML_IS_FRAME,
    PML_IS_STACK,
    PML_IS_RANGE,
    PML_IS_LIST,
    PML_IS_DICT,
};

#define PML_TAG_BITS 4

static inline pml_value pml_values_make(unsigned tag, uint64_t payload)
{
    return payload << PML_TAG_BITS | tag;
}

static inline unsigned pml_values_tag(pml_value value)
{
    return value & ((1u << PML_TAG_BITS) - 1);
}

static inline uint64_t pml_values_payload(pml_value value)
{
    return value >> PML_TAG_BITS;
}

/* Consecutive rows of one kind. */
struct pml_range {
    uint64_t first;
    uint64_t count;
    enum pml_kind kind;
};

/* A list's items, or a dict's keys and values in turn. */
typedef PML_VECTOR(pml_value) pml_items;

struct pml_pair {
    int64_t first, second;
};

struct pml_values {
    PML_VECTOR(uint64_t) objects; /* kind and payload, as a value has tag and payload */
    PML_VECTOR(uint64_t) wide;    /* integers of more than 60 bits, and the bits of floats */
    PML_VECTOR(struct pml_pair) pairs;
    struct pml_index pair_index;
    PML_VECTOR(struct pml_range) ranges;
    PML_VECTOR(pml_items) items;
    size_t useful; /* objects that have become rows, frames, stacks or ranges */
    size_t other;  /* values kept as they are */
};

/* A new empty container, as a value; `*failed` is set where there is no memory. */
pml_value pml_values_container(struct pml_values *values, enum pml_kind empty, bool *failed);
pml_value pml_values_integer(struct pml_values *values, int64_t integer, bool *failed);
pml_value pml_values_wide(struct pml_values *values, enum pml_tag tag, uint64_t bits, bool *failed);
pml_value pml_values_pair(struct pml_values *values, struct pml_pair pair, bool *failed);
/* The integer (or truth) that a value is; false if it is none. Larger than int64: its bits. */
bool pml_values_as_integer(const struct pml_values *values, pml_value value, int64_t *integer);
/* What an object value has become; PML_EMPTY_LIST for values that are no objects. `*payload` is set for others. */
enum pml_kind pml_values_kind(const struct pml_values *values, pml_value value, uint64_t *payload);
void pml_values_become(struct pml_values *values, pml_value object, enum pml_kind kind, uint64_t payload);
/* The items of a list or dict that is kept as it is; NULL for anything else. */
const pml_items *pml_values_items(const struct pml_values *values, pml_value value, enum pml_kind kind);
void pml_values_drop(struct pml_values *values);

#endif
