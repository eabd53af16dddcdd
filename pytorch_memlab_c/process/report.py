"""The report of ``profile_workload``: a plain dictionary, ready for JSON, that prints as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from ..render.text import readable_size
from .metrics import MetricResult
from .operators import OperatorRow

_SHOWN_ROWS = 20
_SHAPES_WIDTH = 44
_HEADINGS = ("operator", "input shapes", "calls", "CPU self", "device self", "CPU net")
_LEFT = 2  # the first columns are left-aligned, the others right-aligned


class Diagnostic(TypedDict):
    """Why a figure is missing or means less than it seems. `code` is for programs, `message` for people."""

    code: str
    severity: str
    metric: str
    message: str


class WorkloadContext(TypedDict):
    """What a report is about: `scopes` says what each figure covers, `versions` names the software.

    `operators` has at most `row_limit` of the `total_grouped_operators` rows, ranked by `ranked_by`.
    """

    device: str
    row_limit: int
    total_grouped_operators: int
    ranked_by: str
    versions: dict[str, str]
    scopes: dict[str, str]


class WorkloadReport(dict[str, Any]):
    """`schema_version`, `context`, `operators`, `totals`, `diagnostics`; `str()` gives a table of the top rows."""

    if TYPE_CHECKING:  # a TypedDict cannot have methods; this gives its keys their types

        @overload
        def __getitem__(self, key: Literal["schema_version"]) -> int: ...
        @overload
        def __getitem__(self, key: Literal["context"]) -> WorkloadContext: ...
        @overload
        def __getitem__(self, key: Literal["operators"]) -> list[OperatorRow]: ...
        @overload
        def __getitem__(self, key: Literal["totals"]) -> dict[str, MetricResult]: ...
        @overload
        def __getitem__(self, key: Literal["diagnostics"]) -> list[Diagnostic]: ...
        @overload
        def __getitem__(self, key: str) -> Any: ...
        def __getitem__(self, key: str) -> Any: ...

    def __str__(self) -> str:
        return "\n".join([_title(self), "", *_table(self["operators"][:_SHOWN_ROWS]), *_notes(self)])


def _title(report: WorkloadReport) -> str:
    context = report["context"]
    shown, total = min(_SHOWN_ROWS, len(report["operators"])), context["total_grouped_operators"]
    return f"{context['device']}: {shown} of {total} operators (by input shapes), by {context['ranked_by']}"


def _table(rows: Sequence[OperatorRow]) -> list[str]:
    cells = [_HEADINGS, *map(_cells, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADINGS))]
    return [_line(row, widths) for row in cells]


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(c.ljust(w) if i < _LEFT else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()


def _cells(row: OperatorRow) -> tuple[str, ...]:
    return (
        row["operator"],
        _shortened(str(row["shapes"])),
        str(row["calls"]),
        readable_seconds(row["cpu_self_seconds"]),
        readable_seconds(row["device_self_seconds"]),
        readable_size(row["cpu_net_bytes"]),
    )


def _shortened(shapes: str) -> str:
    return shapes if len(shapes) <= _SHAPES_WIDTH else shapes[: _SHAPES_WIDTH - 3] + "..."


def readable_seconds(seconds: float | None) -> str:
    """Seconds as ``1.50s``, ``2.00ms`` or ``30.00us``; ``-`` for None."""
    if seconds is None:
        return "-"
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if round(seconds * factor, 2) < 1000:
            return f"{seconds * factor:.2f}{unit}"
    return f"{seconds:.2f}s"


def _notes(report: WorkloadReport) -> list[str]:
    totals = [f"{name}: {_value(metric)} ({metric['scope']})" for name, metric in report["totals"].items()]
    diagnostics = [f"{d['severity']}: {d['message']}" for d in report["diagnostics"]]
    return ["", *totals, *diagnostics, f"threads: {report['context']['scopes']['threads']}"]


def _value(metric: MetricResult) -> str:
    if metric["known_value"] is None:
        return metric["status"]
    at_least = "at least " if metric["status"] == "partial" else ""
    if metric["unit"] == "bytes":
        return at_least + readable_size(int(metric["known_value"]))
    if metric["unit"] == "seconds":
        return at_least + readable_seconds(metric["known_value"])
    return f"{at_least}{metric['known_value']} {metric['unit']}"
