"""The operator table of a profile: one row for each operator and input shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

_MICROSECOND = 1e-6


class OperatorRow(TypedDict):
    """One operator with one set of input shapes.

    Times are seconds spent in the operator itself, without the operators that it calls. `device_self_seconds` is None
    if no time on the device was measured for it, `cpu_net_bytes` is what it allocated minus what it freed, itself too.
    """

    operator: str
    shapes: Any
    calls: int
    cpu_self_seconds: float
    device_self_seconds: float | None
    cpu_net_bytes: int


def operator_rows(averages: Iterable[Any]) -> list[OperatorRow]:
    """Rows of `key_averages(group_by_input_shape=True)`, ranked.

    They are ranked by device self time where it was measured, then by CPU self time. Kernels, and ranges that the
    program named itself, are not operators and have no row.
    """
    rows = [_row(average) for average in averages if _is_operator(average)]
    return sorted(rows, key=_rank)


def _is_operator(average: Any) -> bool:
    return average.device_type.name == "CPU" and not getattr(average, "is_user_annotation", False)


def _row(average: Any) -> OperatorRow:
    device_microseconds = _device_self_time(average)
    return {
        "operator": average.key,
        "shapes": _plain(average.input_shapes),
        "calls": int(average.count),
        "cpu_self_seconds": max(float(average.self_cpu_time_total), 0.0) * _MICROSECOND,
        "device_self_seconds": device_microseconds * _MICROSECOND if device_microseconds > 0 else None,
        "cpu_net_bytes": int(average.self_cpu_memory_usage),
    }


def _device_self_time(average: Any) -> float:
    """Microseconds; PyTorch before 2.4 names only CUDA."""
    time = getattr(average, "self_device_time_total", None)
    return float(getattr(average, "self_cuda_time_total", 0) if time is None else time)


def _rank(row: OperatorRow) -> tuple[float, float, str, str]:
    return -(row["device_self_seconds"] or 0.0), -row["cpu_self_seconds"], row["operator"], str(row["shapes"])


def _plain(shapes: Any) -> Any:
    """Shapes as lists of integers, also those of lists of tensors."""
    if isinstance(shapes, (list, tuple)):
        return [_plain(shape) for shape in shapes]
    return shapes if isinstance(shapes, int) else str(shapes)
