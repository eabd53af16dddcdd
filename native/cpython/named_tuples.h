/* Named tuples, in which figures pass from C to Python: Python reads them by name, so no two files agree on an order.
 *
 * Ownership: each unit has its kinds in static variables, and adds them when the module is made; types live as long as
 * the process. Needs the GIL.
 */
#ifndef PML_NAMED_TUPLES_H
#define PML_NAMED_TUPLES_H

#include "cpython/compat.h"

struct pml_named_tuple {
    PyStructSequence_Desc description; /* all fields are items; their number is counted when the kind is added */
    PyTypeObject *type;
};

#define PML_NAMED_TUPLE(name_, doc_, fields_) \
    { \
        .description = {.name = "pytorch_memlab_c._native." name_, .doc = doc_, .fields = fields_} \
    }

/* Make the kind's type an attribute of the module. -1 with an exception set. */
int pml_named_tuples_add(PyObject *module, struct pml_named_tuple *kind);

/* One of the kind, with the values that the format gives, as for Py_BuildValue: "N" takes over a reference, and NULL in
 * its place means that an exception is set. A new reference. */
PyObject *pml_named_tuples_build(const struct pml_named_tuple *kind, const char *format, ...);

#endif
