"""Snapshots as ``Tracer.snapshot()`` hands them over, with made-up bytes. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any, NamedTuple

from pytorch_memlab_c.line_profiler.records import LineRecords

K = 1024
M = 1024 * 1024


class GrowthStretch(NamedTuple):
    samples: int
    runs: int
    held_bytes: int
    old_bytes: int


class LineGrowth(NamedTuple):
    live_bytes: int
    end_bytes: int
    runs: list[GrowthStretch]
    calls: list[GrowthStretch]


class LineStats(NamedTuple):
    runs: int
    active_peak_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    active_current_bytes: int
    allocated_current_bytes: int
    reserved_current_bytes: int
    net_first_bytes: int
    net_sum_bytes: int
    net_max_bytes: int
    net_last_bytes: int
    gross_bytes: int
    allocations: int
    column_values: tuple[int | None, ...] | None = None
    growth: LineGrowth | None = None
    net_later_max_bytes: int | None = None


class LineCounts(NamedTuple):
    line: int
    hits: int
    charged_slots: tuple[int, ...]
    stats_by_slot: Mapping[int, LineStats]


class CodeCounts(NamedTuple):
    code: CodeType
    calls: int
    lines: Iterable[LineCounts]


class SavedLine(NamedTuple):
    line: int
    slot: int
    activation_bytes: int
    run_max_bytes: int
    total_bytes: int
    parameter_bytes: int
    input_bytes: int
    backward_bytes: int
    hook_bytes: int


class SavedCode(NamedTuple):
    code: CodeType
    lines: Iterable[SavedLine]


def made_up_records(entries: Iterable[tuple[CodeType, int, Iterable[LineCounts]]], **kwargs: Any) -> LineRecords:
    """Records of `(code, calls, lines)` for each code object."""
    return LineRecords.from_snapshot([CodeCounts(*entry) for entry in entries], **kwargs)


def growing(each: int, runs: int = 8) -> LineGrowth:
    """A line that holds so much more after each of these runs, all in one call."""
    stretches = [GrowthStretch(1, 1, each * i, each * i - each) for i in range(1, runs + 1)]
    return LineGrowth(each * runs, each * runs, stretches, [GrowthStretch(1, runs, each, 0)])


def stats(
    peak: int = 0,
    net: int = 0,
    *,
    runs: int = 1,
    reserved: int = 2 * M,
    gross: int | None = None,
    extra: tuple[int | None, ...] | None = None,
    **fields: int,
) -> LineStats:
    """A line's figures; fields not given are derived from ``peak`` and ``net`` (bytes)."""
    gross = max(net, 0) if gross is None else gross
    values = {
        "runs": runs,
        "active_peak": peak,
        "allocated_peak": peak,
        "reserved_peak": reserved,
        "active_current": peak,
        "allocated_current": peak,
        "reserved_current": reserved,
        "net_first": net,
        "net_sum": net,
        "net_max": net,
        "net_last": net,
        "gross_bytes": gross,
        "allocations": int(gross > 0),
        "extra": extra,
    }
    assert fields.keys() <= values.keys()
    return LineStats(*{**values, **fields}.values())


def line(lineno: int, hits: int, slot: int, values: LineStats, **others: Any) -> LineCounts:
    """A line charged to one slot; ``others``: the own records of further slots, as ``slot_2=``."""
    own = {slot: values, **{int(name[5:]): other for name, other in others.items()}}
    return LineCounts(lineno, hits, (slot,), {-1: values, **own})


def code_named(name: str, filename: str = "<made-up>", body: str = "    pass\n") -> CodeType:
    """The code of a function that has no source file."""
    namespace: dict[str, Any] = {}
    exec(compile(f"def {name}():\n{body}", filename, "exec"), namespace)
    return namespace[name].__code__
