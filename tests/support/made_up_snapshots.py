"""Snapshots as ``Tracer.snapshot()`` hands them over, with made-up bytes. No torch, no engine."""

from __future__ import annotations

from types import CodeType
from typing import Any

K = 1024
M = 1024 * 1024


def stats(
    peak: int = 0,
    net: int = 0,
    *,
    runs: int = 1,
    reserved: int = 2 * M,
    gross: int | None = None,
    extra: tuple[int | None, ...] | None = None,
    **fields: int,
) -> tuple[Any, ...]:
    """A stats tuple; fields not given are derived from ``peak`` and ``net`` (bytes)."""
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
    return tuple({**values, **fields}.values())


def line(lineno: int, hits: int, slot: int, values: tuple[Any, ...], **others: Any) -> tuple:
    """A line charged to one slot; ``others``: the own records of further slots, as ``slot_2=``."""
    own = {slot: values, **{int(name[5:]): other for name, other in others.items()}}
    return lineno, hits, (slot,), {-1: values, **own}


def code_named(name: str, filename: str = "<made-up>", body: str = "    pass\n") -> CodeType:
    """The code of a function that has no source file."""
    namespace: dict[str, Any] = {}
    exec(compile(f"def {name}():\n{body}", filename, "exec"), namespace)
    return namespace[name].__code__
