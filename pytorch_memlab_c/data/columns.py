"""The columns a report can show: their names, their device and where their value is kept.

Own columns (``hits``, ``net``, ...) and the columns the allocator's events carry are fields of
``records.Stats``; every other key of ``torch.cuda.memory_stats()`` needs the allocator's
statistics and must be asked for before the program runs. torch is never imported here.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable

from . import advice
from .hints import did_you_mean

DEFAULT_COLUMNS: tuple[str, ...] = (
    "active_bytes.all.peak",
    "reserved_bytes.all.peak",
    "net.last",
    "hits",
)
DEFAULT_CPU_COLUMNS: tuple[str, ...] = ("tensor_bytes.peak", "net.last", "hits")
#: What the default columns are called above a table; columns that were asked for have their full names.
_SHORT = {
    "active_bytes.all.peak": "peak",
    "reserved_bytes.all.peak": "reserved.peak",
    "tensor_bytes.peak": "peak",
    "net.last": "net/run",
    "hits": "runs",
}

#: Column -> field of ``Stats``, for columns that mean the same on every device.
OWN_FIELDS: dict[str, str] = {
    "runs": "runs",
    "net": "net_sum",
    "net.total": "net_sum",
    "net.first": "net_first",
    "net.max": "net_max",
    "net.last": "net_last",
    "net.later": "net_later",
    "net.later.max": "net_later_max",
    "net.later.last": "net_later_last",
    "allocated": "gross_bytes",
    "allocations": "allocations",
}
#: Column -> field, on the CPU only (metric ``pytorch_tensor_bytes``).
CPU_FIELDS: dict[str, str] = {
    "tensor_bytes.peak": "allocated_peak",
    "tensor_bytes.current": "allocated_current",
}
#: Column -> field, on CUDA devices only.
CUDA_FIELDS: dict[str, str] = {
    f"{kind}_bytes.all.{metric}": f"{kind}_{metric}"
    for kind in ("active", "allocated", "reserved")
    for metric in ("peak", "current")
}

#: Column -> field of ``Saved``: what autograd keeps, of profilers with ``saved=True``.
SAVED_FIELDS: dict[str, str] = {
    "saved": "activations",
    "saved.run": "run_max",
    "saved.total": "total",
    "saved.parameters": "parameters",
    "saved.inputs": "inputs",
    "saved.backward": "backward",
    "saved.hooks": "hooks",
}

_STATISTICS = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
_POOLS = ("all", "large_pool", "small_pool")
_METRICS = ("current", "peak", "allocated", "freed")
_COUNTERS = (
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
    "max_split_size",
)


def _memory_stats_keys() -> tuple[str, ...]:
    """The keys of ``torch.cuda.memory_stats()`` that torch 2.1 and later have in common or add."""
    pooled = map(".".join, itertools.product(_STATISTICS, _POOLS, _METRICS))
    oversize = map(".".join, itertools.product(("oversize_allocations", "oversize_segments"), _METRICS))
    return (*pooled, *oversize, *_COUNTERS)


MEMORY_STATS_KEYS: tuple[str, ...] = _memory_stats_keys()
_EVENT_COLUMNS = frozenset(("hits", *OWN_FIELDS, *CPU_FIELDS, *CUDA_FIELDS, *SAVED_FIELDS))


def _live_keys() -> tuple[str, ...]:
    """The keys the running torch has, where CUDA is already initialised; otherwise none."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return ()
        return tuple(cuda.memory_stats())
    except Exception:  # a backend without statistics: the static list is used
        return ()


def valid_columns() -> tuple[str, ...]:
    """Every valid column: own ones, CPU ones, then the keys of ``torch.cuda.memory_stats()``."""
    own = ("hits", *OWN_FIELDS, *CPU_FIELDS, *SAVED_FIELDS)
    return tuple(dict.fromkeys((*own, *MEMORY_STATS_KEYS, *_live_keys())))


def check_columns(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Return ``columns`` as a tuple without duplicates; a str alone is one column.

    Raises:
        TypeError: neither a name nor a list of names.
        ValueError: one of them is no column; the message names it, the nearest and all valid ones.
    """
    if not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a name or a list of names, not {columns!r}")
    wanted = (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [c for c in wanted if c not in _EVENT_COLUMNS and c not in MEMORY_STATS_KEYS]
    if unknown:
        valid = valid_columns()
        for column in unknown:
            if column not in valid:
                raise ValueError(f"{unknown_column(column)} Valid columns: {', '.join(valid)}")
    return tuple(dict.fromkeys(wanted))


def unknown_column(column: object) -> str:
    """That there is no such column, and the nearest ones."""
    return f"unknown column {column!r}.{did_you_mean(str(column), valid_columns())}"


def extra_columns(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Those of ``columns`` that the allocator's events do not carry (they need its statistics).

    Raises:
        ValueError: one of them is no column.
    """
    return tuple(c for c in check_columns(columns) if c not in _EVENT_COLUMNS)


def asks_for_saved(columns: str | Iterable[str] | None) -> bool:
    """Whether one of ``columns`` needs what autograd keeps to be counted."""
    return columns is not None and any(column in SAVED_FIELDS for column in check_columns(columns))


def require_recorded(columns: str | Iterable[str], recorded: Iterable[str]) -> tuple[str, ...]:
    """``columns``, checked, if all that need the allocator's statistics are in ``recorded``.

    Raises:
        ValueError: one does not exist, or was not recorded; the message says how to record it.
    """
    wanted = check_columns(columns)
    missing = [c for c in extra_columns(wanted) if c not in recorded]
    saved = [c for c in wanted if c in SAVED_FIELDS]
    if saved and "saved" not in recorded:
        raise ValueError(
            f"the column {saved[0]!r} was not recorded: what autograd saves is counted with {advice.record_saved()}, "
            "or where such a column is named before the run"
        )
    if missing:
        raise ValueError(
            f"the column {missing[0]!r} was not recorded: it needs the allocator's statistics. "
            f"Ask for it before the program runs, {advice.record_columns(missing)}"
        )
    return wanted


def is_bytes(column: str) -> bool:
    """Whether the column's values are bytes. ``max_split_size`` is a setting (-1: unlimited)."""
    if column in OWN_FIELDS:
        return column not in ("runs", "allocations")
    if column in SAVED_FIELDS:
        return True
    return "bytes" in column.partition(".")[0]


def default_columns(has_cpu: bool, has_cuda: bool) -> tuple[str, ...]:
    """The default columns of a table whose rows belong to the CPU, to CUDA devices or to both."""
    if not has_cpu:
        return DEFAULT_COLUMNS
    if not has_cuda:
        return DEFAULT_CPU_COLUMNS
    first_common = DEFAULT_COLUMNS.index("net.last")
    return (*DEFAULT_COLUMNS[:first_common], "tensor_bytes.peak", *DEFAULT_COLUMNS[first_common:])


def short_headings(columns: Iterable[str]) -> tuple[str, ...]:
    """What default columns are called above a table; parts that have a row each are separated by dots."""
    shown = tuple(columns)
    both = {"tensor_bytes.peak": "cpu.peak"} if DEFAULT_COLUMNS[0] in shown else {}
    return tuple(both.get(column, _SHORT[column]) for column in shown)
