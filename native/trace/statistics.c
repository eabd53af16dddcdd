/* PyTorch's allocator statistics, read at the ends of segments: the portable second sampler, the columns that events do
 * not carry, and the truth where events leave a doubt (blocks waiting for a stream, memory given back to the device).
 *
 * Reading calls Python, so the pending exception is set aside, re-entry is refused and no lock is held. A reading that
 * needs exact peaks resets them; the peaks that the user would have seen are kept in `kept` and given back by
 * allocator_stats.py. Failures set a sticky flag, which reports display.
 */
#include "trace/statistics.h"

#include "events/allocator_events.h"
#include "meter/stat_columns.h"
#include "holders/ledger.h"
#include "meter/stream_pending.h"
#include "meter/window.h"

/* nested[path[0]][path[1]]..., the last name replaced by `last` unless NULL; 0 where there is none. */
static int64_t lookup(PyObject *nested, PyObject *path, const char *last)
{
    PyObject *at = nested;
    Py_ssize_t length = PyTuple_GET_SIZE(path);
    for (Py_ssize_t i = 0; at && i < length; i++) {
        if (!PyDict_Check(at))
            return 0;
        bool replaced = last && i == length - 1;
        at = replaced ? PyDict_GetItemString(at, last) : PyDict_GetItemWithError(at, PyTuple_GET_ITEM(path, i));
    }
    return at && PyLong_Check(at) ? PyLong_AsLongLong(at) : 0;
}

static int64_t statistic(PyObject *nested, const char *name, const char *field)
{
    PyObject *stat = PyDict_GetItemString(nested, name);
    PyObject *all = stat && PyDict_Check(stat) ? PyDict_GetItemString(stat, "all") : NULL;
    PyObject *value = all && PyDict_Check(all) ? PyDict_GetItemString(all, field) : NULL;
    return value && PyLong_Check(value) ? PyLong_AsLongLong(value) : 0;
}

static void read_levels(PyObject *nested, const char *field, int64_t level[PML_METRICS])
{
    level[PML_ACTIVE] = statistic(nested, "active_bytes", field);
    level[PML_ALLOCATED] = statistic(nested, "allocated_bytes", field);
    level[PML_RESERVED] = statistic(nested, "reserved_bytes", field);
}

/* into.peak = max(into.peak, from.peak) at every depth; entries that are missing are made. */
static int merge_peaks(PyObject *into, PyObject *from)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(from, &position, &key, &value)) {
        PyObject *have = PyDict_GetItemWithError(into, key);
        if (PyDict_Check(value)) {
            PyObject *nested = have ? Py_NewRef(have) : PyDict_New();
            int failed = !nested || (!have && PyDict_SetItem(into, key, nested) < 0) || merge_peaks(nested, value) < 0;
            Py_XDECREF(nested);
            if (failed)
                return -1;
        } else if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "peak") == 0) {
            int more = have ? PyObject_RichCompareBool(have, value, Py_LT) : 1;
            if (more < 0 || (more && PyDict_SetItem(into, key, value) < 0))
                return -1;
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int keep_peaks(struct pml_statistics *s, PyObject *index, PyObject *nested)
{
    PyObject *kept = PyDict_GetItemWithError(s->kept, index);
    if (kept)
        return merge_peaks(kept, nested);
    kept = PyErr_Occurred() ? NULL : PyDict_New();
    int failed = !kept || PyDict_SetItem(s->kept, index, kept) < 0 || merge_peaks(kept, nested) < 0;
    Py_XDECREF(kept);
    return failed ? -1 : 0;
}

static int reset_peaks(struct pml_statistics *s, PyObject *index, PyObject *nested)
{
    if (keep_peaks(s, index, nested) < 0)
        return -1;
    PyObject *done = PyObject_CallOneArg(s->reset, index);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* What was allocated since the last reading; a counter that fell was reset by the user. */
static int64_t growth(int64_t *last, int64_t now)
{
    int64_t grown = now >= *last ? now - *last : now;
    *last = now;
    return grown;
}

static void observe(PyObject *nested, int slot)
{
    static int64_t gross[PML_MAX_DEVICES], count[PML_MAX_DEVICES];
    struct pml_levels now, before;
    int64_t peak[PML_METRICS];
    now.gross = growth(&gross[slot], statistic(nested, "allocated_bytes", "allocated"));
    now.count = growth(&count[slot], statistic(nested, "allocation", "allocated"));
    read_levels(nested, "current", now.level);
    read_levels(nested, "peak", peak);
    pml_ledger_lock(slot);
    pml_meter_read(slot, &before);
    now.gross += before.gross;
    now.count += before.count;
    pml_meter_observe(slot, &now, peak);
    pml_ledger_unlock(slot);
}

static void correct(PyObject *nested, int slot)
{
    int64_t truth[PML_METRICS];
    struct pml_levels now;
    read_levels(nested, "current", truth);
    pml_meter_read(slot, &now);
    pml_ledger_correct_pending(slot, truth[PML_ACTIVE] - truth[PML_ALLOCATED]);
    for (int m = PML_ACTIVE; m < PML_METRICS; m++)
        if (m != PML_ALLOCATED && now.level[m] != truth[m])
            pml_ledger_adjust(slot, m, truth[m]);
}

static void sample_columns(struct pml_statistics *s, PyObject *nested, int slot)
{
    int64_t level[PML_MAX_STAT_COLUMNS], peak[PML_MAX_STAT_COLUMNS];
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(s->columns); i++) {
        PyObject *path = PyList_GET_ITEM(s->columns, i);
        PyObject *last = PyTuple_GET_ITEM(path, PyTuple_GET_SIZE(path) - 1);
        bool peaked = PyUnicode_CompareWithASCIIString(last, "peak") == 0;
        peak[i] = lookup(nested, path, NULL);
        level[i] = peaked ? lookup(nested, path, "current") : peak[i];
    }
    pml_stat_columns_sample(slot, level, peak);
    pml_window_fold_columns(slot);
}

static int read_device(struct pml_statistics *s, int slot, bool sample)
{
    PyObject *index = PyLong_FromLong(slot - 1);
    PyObject *nested = index ? PyObject_CallOneArg(s->read, index) : NULL;
    int result = nested && PyDict_Check(nested) ? 0 : -1;
    if (result == 0) {
        if (s->only)
            observe(nested, slot);
        else
            correct(nested, slot);
        if (sample)
            sample_columns(s, nested, slot);
        if (sample || s->only)
            result = reset_peaks(s, index, nested);
    }
    Py_XDECREF(nested);
    Py_XDECREF(index);
    return result;
}

static int devices_there(struct pml_statistics *s)
{
    if (!s->only)
        return pml_meter_devices() - 1;
    PyObject *count = PyObject_CallNoArgs(s->devices);
    long devices = count ? PyLong_AsLong(count) : 0;
    Py_XDECREF(count);
    return devices < PML_MAX_DEVICES - 1 ? (int)devices : PML_MAX_DEVICES - 1;
}

/* `all`: every device, else those in doubt. */
static void read_devices(struct pml_statistics *s, bool sample, bool all)
{
    if (!s->read || s->reading)
        return;
    s->reading = true;
    struct pml_compat_exception pending = pml_compat_exception_take();
    int devices = devices_there(s);
    for (int slot = 1; slot <= devices && !PyErr_Occurred(); slot++)
        if ((s->only || pml_meter_used(slot)) && (all || pml_stream_pending_unsure(slot)))
            read_device(s, slot, sample);
    if (PyErr_Occurred()) {
        s->failed = true;
        pml_compat_exception_drop();
    }
    pml_compat_exception_put(pending);
    s->reading = false;
    if (sample)
        s->sampled = pml_meter_ticks();
}

static bool in_doubt(void)
{
    for (int d = 1; d < pml_meter_devices(); d++)
        if (pml_stream_pending_unsure(d))
            return true;
    return false;
}

/* Reads what events do not show. Nothing is read if nothing happened since the last reading. */
static void look_closer(struct pml_statistics *s, bool sample)
{
    uint64_t ticks = pml_meter_ticks();
    sample = sample && ticks != s->sampled;
    if (ticks == s->looked && !sample && !s->only)
        return;
    s->invalidations = pml_meter_invalidations();
    pml_stream_pending_allocated(); /* whatever was recorded on this thread by now was not part of a free */
    bool released = pml_allocator_events_take_released();
    bool all = s->only || sample || released;
    if (all || in_doubt())
        read_devices(s, sample, all);
    s->looked = pml_meter_ticks();
}

/* A segment ends or begins: bring the meter up to the truth and fold it into the open windows. */
void pml_statistics_sync(struct pml_state *state, bool sample)
{
    struct pml_statistics *s = &state->statistics;
    if (sample || s->only || pml_stream_pending_in_use() || pml_meter_invalidations() != s->invalidations)
        look_closer(s, sample);
    pml_ledger_fold();
}

/* ---- for Python ---- */

PyObject *pml_statistics_connect(PyObject *module, PyObject *args)
{
    struct pml_statistics *s = &pml_state_of(module)->statistics;
    PyObject *read, *reset, *devices;
    if (!PyArg_ParseTuple(args, "OOO:connect_statistics", &read, &reset, &devices))
        return NULL;
    Py_XSETREF(s->read, Py_NewRef(read));
    Py_XSETREF(s->reset, Py_NewRef(reset));
    Py_XSETREF(s->devices, Py_NewRef(devices));
    Py_RETURN_NONE;
}

PyObject *pml_statistics_only(PyObject *module, PyObject *flag)
{
    int only = PyObject_IsTrue(flag);
    if (only < 0)
        return NULL;
    pml_state_of(module)->statistics.only = only;
    pml_allocator_events_follow_accelerators(!only);
    Py_RETURN_NONE;
}

PyObject *pml_statistics_add_column(PyObject *module, PyObject *args)
{
    struct pml_statistics *s = &pml_state_of(module)->statistics;
    PyObject *path;
    int kind;
    if (!PyArg_ParseTuple(args, "O!i:add_column", &PyTuple_Type, &path, &kind))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(s->columns); i++) {
        int same = PyObject_RichCompareBool(PyList_GET_ITEM(s->columns, i), path, Py_EQ);
        if (same)
            return same < 0 ? NULL : PyLong_FromSsize_t(i);
    }
    if (PyTuple_GET_SIZE(path) == 0 || kind < PML_STAT_COLUMN_PEAK || kind > PML_STAT_COLUMN_COUNT)
        return PyErr_Format(PyExc_ValueError, "a column needs a path and a kind from 0 to 2");
    if (pml_stat_columns_count() == PML_MAX_STAT_COLUMNS)
        return PyErr_Format(PyExc_ValueError, "at most %d statistics columns", PML_MAX_STAT_COLUMNS);
    if (PyList_Append(s->columns, path) < 0)
        return NULL;
    s->sampled = 0;
    return PyLong_FromLong(pml_stat_columns_add((enum pml_stat_column_kind)kind));
}

PyObject *pml_statistics_sample(PyObject *module, PyObject *unused)
{
    struct pml_state *state = pml_state_of(module);
    state->statistics.sampled = 0;
    pml_statistics_sync(state, true);
    return PyBool_FromLong(!state->statistics.failed);
}

PyObject *pml_statistics_kept(PyObject *module, PyObject *device)
{
    PyObject *kept = PyDict_GetItemWithError(pml_state_of(module)->statistics.kept, device);
    if (!kept && PyErr_Occurred())
        return NULL;
    return Py_NewRef(kept ? kept : Py_None);
}

PyObject *pml_statistics_forget(PyObject *module, PyObject *device)
{
    PyObject *kept = pml_state_of(module)->statistics.kept;
    int there = PyDict_Contains(kept, device);
    if (there < 0 || (there && PyDict_DelItem(kept, device) < 0))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *pml_statistics_merge_peaks(PyObject *module, PyObject *args)
{
    PyObject *into, *from;
    if (!PyArg_ParseTuple(args, "O!O!:merge_peaks", &PyDict_Type, &into, &PyDict_Type, &from))
        return NULL;
    if (merge_peaks(into, from) < 0)
        return NULL;
    Py_RETURN_NONE;
}
