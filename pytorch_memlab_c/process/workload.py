"""``profile_workload``: the operators of one callable, by time and by memory."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable
from typing import Any

from .. import _native
from ..data.device_names import DeviceLike
from ..data.version import __version__
from ..engine import following
from .devices import Device, find_device
from .metrics import MetricResult, complete, unavailable
from .operators import OperatorRow, operator_rows
from .profiling import alone, run_profiled
from .report import Diagnostic, WorkloadContext, WorkloadReport
from .trace_file import whole_file

#: The most rows that a report holds.
ROW_LIMIT = 100

_SCOPES = {
    "cpu_self_seconds": "time in the operator on the CPU, without the operators it calls",
    "device_self_seconds": "time of the operator's own kernels on the device; null where none was measured",
    "cpu_net_bytes": "CPU tensor bytes that the operator itself allocated minus those it freed: negative where it "
    "frees more, and `[memory]` is what was allocated and freed outside any operator",
    "cpu_allocated_bytes": "all CPU tensor bytes allocated while the workload ran, by any thread",
    "cpu_freed_bytes": "all CPU tensor bytes freed while the workload ran, by any thread",
    "threads": "operators of the calling thread and of autograd's backward threads that serve it; not of other threads",
}


def profile_workload(
    fn: Callable[[], object], *, device: DeviceLike, trace_path: str | os.PathLike[str] | None = None
) -> WorkloadReport:
    """Call `fn()` once under `torch.profiler` and give its operators.

    `report["operators"]` has a row for each operator and input shapes, at most 100: `operator`, `shapes`, `calls`,
    `cpu_self_seconds`, `device_self_seconds` (None where it was not measured), `cpu_net_bytes` (negative where an
    operator frees more than it allocates), ranked by device self time where there is any, then by CPU self time.
    `report["context"]`: device, row limit, number of all grouped operators, versions, and the scope of each figure.
    `report["totals"]`: `MetricResult`s of the whole workload; a `process_peak_rss` may be put there, from
    `measure_peak_rss`. `report["diagnostics"]`: what is missing, and why.

    The report is a dictionary ready for JSON; `str(report)` is a table of its top rows. Profiling takes time and memory
    of its own: measure peaks with `measure_peak_memory`, in another run.

    Args:
        fn: a callable without arguments; its exception passes through, with the profiler stopped.
        device: where it runs, as for `measure_peak_memory`.
        trace_path: also write a Chrome trace there (compressed if it ends in `.gz`): whole, or not at all.

    Raises:
        NotImplementedError: PyTorch, or its support for this kind of device, is missing.
        RuntimeError: the device is not there; or another PyTorch profiler is running, which is left alone; or `fn` ran
            one of its own.
        OSError: the trace cannot be written; asked before `fn` is called.
    """
    target = find_device(device)
    torch = _torch()
    following.prepare()
    with alone(torch), contextlib.ExitStack() as stack:
        trace = None if trace_path is None else stack.enter_context(whole_file(trace_path))
        before = _native.levels(0)
        profile = run_profiled(torch, fn, target)
        after = _native.levels(0)
        if trace is not None:
            profile.export_chrome_trace(trace)
    rows = operator_rows(profile.key_averages(group_by_input_shape=True))
    return WorkloadReport(
        schema_version=1,
        context=_context(torch, target, rows),
        operators=rows[:ROW_LIMIT],
        totals=_totals(rows, before, after),
        diagnostics=_diagnostics(target, rows),
    )


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise NotImplementedError("profile_workload needs PyTorch, which is not installed") from error
    return torch


def _context(torch: Any, device: Device, rows: list[OperatorRow]) -> WorkloadContext:
    return {
        "device": device.name,
        "row_limit": ROW_LIMIT,
        "total_grouped_operators": len(rows),
        "ranked_by": "device_self_seconds" if _device_time(rows) else "cpu_self_seconds",
        "versions": {
            "pytorch_memlab_c": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "scopes": dict(_SCOPES),
    }


def _device_time(rows: list[OperatorRow]) -> list[float]:
    return [row["device_self_seconds"] for row in rows if row["device_self_seconds"] is not None]


def _totals(
    rows: list[OperatorRow], before: _native.DeviceLevels, after: _native.DeviceLevels
) -> dict[str, MetricResult]:
    """Of all rows, not only those in the report; `before` and `after` are the engine's levels of the CPU."""
    cpu = sum(row["cpu_self_seconds"] for row in rows)
    on_device = _device_time(rows)
    allocated = after.gross_bytes - before.gross_bytes if following.cpu_is_followed() else None
    freed = None if allocated is None else allocated - (after.allocated_bytes - before.allocated_bytes)
    return {
        "cpu_self_seconds": _metric(cpu, "cpu_self_seconds", "seconds", "torch.profiler"),
        "device_self_seconds": _metric(
            sum(on_device) if on_device else None, "device_self_seconds", "seconds", "torch.profiler"
        ),
        "cpu_allocated_bytes": _metric(allocated, "cpu_allocated_bytes", "bytes", "allocator events"),
        "cpu_freed_bytes": _metric(freed, "cpu_freed_bytes", "bytes", "allocator events"),
    }


def _metric(value: int | float | None, name: str, unit: str, method: str) -> MetricResult:
    scope = _SCOPES[name]
    if value is None:
        return unavailable(unit=unit, scope=scope, method=method)
    return complete(value, unit=unit, scope=scope, method=method)


def _diagnostics(device: Device, rows: list[OperatorRow]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if device.kind == "mps":
        found.append(
            _warning("mps_cpu_dispatch_only", "device_self_seconds", "PyTorch's profiler does not see MPS kernels")
        )
    elif device.kind != "cpu" and not _device_time(rows):
        message = f"no kernel of {device.name} was recorded"
        found.append(_warning("device_time_not_measured", "device_self_seconds", message))
    for diagnostic in found:
        diagnostic["message"] += ": rows describe the dispatch on the CPU only"
    if not following.cpu_is_followed():
        message = "what PyTorch's CPU allocator does is not visible on this platform"
        found.append(_warning("cpu_allocations_not_visible", "cpu_allocated_bytes", message))
    return found


def _warning(code: str, metric: str, message: str) -> Diagnostic:
    return {"code": code, "severity": "warning", "metric": metric, "message": message}
