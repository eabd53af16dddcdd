/* One child process and its highest resident memory (see child_rss.c). Needs the GIL; called by Python. */
#ifndef PML_CHILD_RSS_H
#define PML_CHILD_RSS_H

#include "cpython/compat.h"

PyObject *pml_child_rss_run(PyObject *module, PyObject *args);

#endif
