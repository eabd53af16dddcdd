/* What autograd keeps (saved_tables.h), as Python sees it: beginning to follow it, asking whether a tensor is a
 * parameter, and the figures of a tracer. Needs the GIL, but for `is_parameter`, which takes it.
 */
#define _GNU_SOURCE
#include "types/saved_figures.h"

#include <dlfcn.h>

#include "cpython/named_tuples.h"
#include "events/saved_events.h"
#include "base/torch_abi.h"

#define MOST_SAMPLES 8

/* THPVariable_Wrap: the Python object of a tensor, a new reference. */
typedef PyObject *wrap_function(const void *tensor);
static wrap_function *wrap;
static PyObject *is_leaf, *requires_grad, *base_of; /* attributes of torch._C.TensorBase; owned, never given back */
static PyObject *plainly; /* torch._C.DisableTorchFunctionSubclass: no Python code of a tensor subclass runs */

static PyObject *attribute(PyObject *descriptor, PyObject *tensor)
{
    return PyObject_CallMethod(descriptor, "__get__", "O", tensor);
}

static bool truth(PyObject *descriptor, PyObject *tensor)
{
    PyObject *value = attribute(descriptor, tensor);
    bool result = value && PyObject_IsTrue(value) == 1;
    Py_XDECREF(value);
    return result;
}

static bool leaf_or_view_of_one(PyObject *tensor)
{
    PyObject *base = attribute(base_of, tensor);
    PyObject *owner = base && base != Py_None ? base : tensor;
    bool result = truth(is_leaf, owner) && truth(requires_grad, owner);
    Py_XDECREF(base);
    return result;
}

static bool ask(const void *handle)
{
    PyObject *guard = PyObject_CallNoArgs(plainly);
    PyObject *entered = guard ? PyObject_CallMethod(guard, "__enter__", NULL) : NULL;
    PyObject *tensor = entered ? wrap(handle) : NULL;
    bool parameter = tensor && leaf_or_view_of_one(tensor);
    PyErr_Clear();
    Py_XDECREF(tensor);
    if (entered)
        Py_XDECREF(PyObject_CallMethod(guard, "__exit__", "OOO", Py_None, Py_None, Py_None));
    Py_XDECREF(entered);
    Py_XDECREF(guard);
    PyErr_Clear();
    return parameter;
}

static bool is_parameter(const void *handle)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    struct pml_compat_exception pending = pml_compat_exception_take();
    bool parameter = ask(handle);
    pml_compat_exception_put(pending);
    PyGILState_Release(gil);
    return parameter;
}

/* ---- beginning ---- */

static int read_sample(PyObject *item, struct pml_saved_sample *sample)
{
    unsigned long long tensor, storage, memory;
    long long bytes;
    if (!PyArg_ParseTuple(item, "KKKL;a sample is (tensor, storage, memory, bytes)", &tensor, &storage, &memory,
                          &bytes))
        return -1;
    *sample = (struct pml_saved_sample){(void *)(uintptr_t)tensor, (void *)(uintptr_t)storage,
                                        (void *)(uintptr_t)memory, bytes};
    return 0;
}

static bool find_wrap(void)
{
    void *library = dlopen(PML_TORCH_PYTHON, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return false;
    wrap = (wrap_function *)dlsym(library, PML_TORCH_WRAP);
    dlclose(library);
    return wrap != NULL;
}

static int take_class(PyObject *tensor_base, PyObject *guard)
{
    Py_XSETREF(is_leaf, PyObject_GetAttrString(tensor_base, "is_leaf"));
    Py_XSETREF(requires_grad, PyObject_GetAttrString(tensor_base, "requires_grad"));
    Py_XSETREF(base_of, PyObject_GetAttrString(tensor_base, "_base"));
    Py_XSETREF(plainly, Py_NewRef(guard));
    return is_leaf && requires_grad && base_of ? 0 : -1;
}

PyObject *pml_saved_figures_connect(PyObject *module, PyObject *args)
{
    PyObject *samples, *tensor_base, *guard;
    struct pml_saved_sample sample[MOST_SAMPLES];
    if (!PyArg_ParseTuple(args, "O!OO:saved_connect", &PyTuple_Type, &samples, &tensor_base, &guard))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(samples);
    if (count < 1 || count > MOST_SAMPLES)
        return PyErr_Format(PyExc_ValueError, "%zd samples; 1 to %d are read", count, MOST_SAMPLES);
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_sample(PyTuple_GET_ITEM(samples, i), &sample[i]) < 0)
            return NULL;
    if (take_class(tensor_base, guard) < 0)
        return NULL;
    bool done = find_wrap() && pml_saved_events_learn(sample, (int)count) && pml_saved_events_install();
    if (done)
        pml_saved_tables_ask_with(is_parameter);
    return PyBool_FromLong(done);
}

PyObject *pml_saved_figures_learn_wrapper(PyObject *module, PyObject *args)
{
    unsigned long long wrapper, inside;
    if (!PyArg_ParseTuple(args, "KK:saved_learn_wrapper", &wrapper, &inside))
        return NULL;
    return PyBool_FromLong(pml_saved_events_learn_wrapper((void *)(uintptr_t)wrapper, (void *)(uintptr_t)inside));
}

PyObject *pml_saved_figures_hooks_are_set(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(pml_saved_events_hooks_are_set());
}

PyObject *pml_saved_figures_follow(PyObject *module, PyObject *follow)
{
    int on = PyObject_IsTrue(follow);
    if (on < 0)
        return NULL;
    pml_saved_tables_follow(on);
    Py_RETURN_NONE;
}

/* ---- figures ---- */

static PyStructSequence_Field line_fields[] = {
    {"line", "its number"},
    {"slot", "the device"},
    {"activation_bytes", "the highest sum of what was saved by the line and still lived"},
    {"run_max_bytes", "the most of one run"},
    {"total_bytes", "the sum over all runs"},
    {"parameter_bytes", "as activation_bytes, of parameters"},
    {"input_bytes", "of what was there before the outermost profiled call"},
    {"backward_bytes", "of what was saved while backward ran"},
    {"hook_bytes", "given to saved-tensor hooks in one outermost call"},
    {NULL, NULL},
};
static struct pml_named_tuple line_kind =
    PML_NAMED_TUPLE("SavedLine", "What autograd kept of a line on one device.", line_fields);

static PyStructSequence_Field code_fields[] = {
    {"code", "the code object"},
    {"lines", "list of SavedLine"},
    {NULL, NULL},
};
static struct pml_named_tuple code_kind =
    PML_NAMED_TUPLE("SavedCode", "What autograd kept of a code object's lines.", code_fields);

int pml_saved_figures_add_types(PyObject *module)
{
    return pml_named_tuples_add(module, &line_kind) < 0 ? -1 : pml_named_tuples_add(module, &code_kind);
}

static PyObject *saved_line(int line, int device, const struct pml_saved_figures *f)
{
    const int64_t *peak = f->peak;
    return pml_named_tuples_build(&line_kind, "(iiLLLLLLL)", line, device, (long long)peak[PML_SAVED_ACTIVATION],
                                  (long long)f->run_max, (long long)f->total, (long long)peak[PML_SAVED_PARAMETER],
                                  (long long)peak[PML_SAVED_INPUT], (long long)peak[PML_SAVED_BACKWARD],
                                  (long long)f->hooks_max);
}

static int append_line(PyObject *list, struct pml_saved_table *table, int line, int device)
{
    struct pml_saved_figures figures;
    if (!pml_saved_tables_read(table, line, device, &figures))
        return 0;
    PyObject *row = saved_line(line, device, &figures);
    int result = row ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return result;
}

PyObject *pml_saved_figures_new(PyObject *code, struct pml_saved_table *table)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < table->lines; i++)
        for (int d = 0; list && d < PML_MAX_DEVICES; d++)
            if (append_line(list, table, table->first_line + i, d) < 0)
                Py_CLEAR(list);
    return pml_named_tuples_build(&code_kind, "(ON)", code, list);
}
