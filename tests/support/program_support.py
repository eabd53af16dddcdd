"""What test programs share: a made-up allocator on the CPU's slot, figures by source line, and results for the test.

Needs neither torch nor pytest.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pytorch_memlab_c import LineProfiler, LineRecords, _native, profile
from pytorch_memlab_c.engine import following
from pytorch_memlab_c.line_profiler import decorators

CPU = 0


def allocate(size: int) -> int:
    """A made-up allocation of `size` bytes on the CPU."""
    _native.inject_event(CPU, size)
    return size


def free(size: int) -> None:
    """A made-up free of `size` bytes on the CPU."""
    _native.inject_event(CPU, -size)


class Block:
    """Made-up memory that lives as long as the object, as a tensor's does."""

    def __init__(self, size: int) -> None:
        self.size = allocate(size)

    def __del__(self) -> None:
        free(self.size)


_pointers = itertools.count(1 << 40, 512)
_ends: dict[int, Any] = {}


class OwnedBlock:
    """Made-up memory with an address: it belongs to the line that made it, and is freed by C, as a tensor's is."""

    def __init__(self, size: int) -> None:
        self.size, pointer = size, next(_pointers)
        _native.inject_event(CPU, size, 0, 0, pointer)
        freeing = itertools.starmap(_native.inject_event, [(CPU, -size, 0, 0, pointer)])
        _ends[pointer] = weakref.ref(self, functools.partial(next, freeing))


def level() -> int:
    """Bytes that are allocated on the CPU now."""
    following.prepare()
    return _native.levels(CPU)[1]


class Line(NamedTuple):
    """A line's figures on one device."""

    hits: int
    peak: int
    net: int
    net_first: int = 0
    net_max: int = 0
    net_last: int = 0
    allocated: int = 0
    allocations: int = 0


_NOTHING = (0,) * 13


def lines(profiler: LineProfiler | LineRecords, name: str | None = None, device: str = "cpu") -> dict[Any, Line]:
    """Figures of the lines that ran, by their text (the line's number where there is no source).

    `name`: the function's qualname, if there are several.
    """
    records = profiler if isinstance(profiler, LineRecords) else profiler.records()
    found = [f for f in records.functions if name is None or f.qualname == name]
    assert len(found) == 1, [f.qualname for f in records.functions]
    (function,) = found
    text = dict(enumerate(function.source or (), function.first_line))
    return {text.get(line.line, str(line.line)).strip(): _line(line, device) for line in function.lines}


def _line(line: Any, device: str) -> Line:
    stats = line.stats.get(device, _NOTHING)
    return Line(line.hits, stats[2], stats[8], stats[7], stats[9], stats[10], stats[11], stats[12])


def column(profiler: LineProfiler, field: str, name: str | None = None, device: str = "cpu") -> dict[Any, int]:
    """One field of `Line`, by the lines' text."""
    return {text: getattr(line, field) for text, line in lines(profiler, name, device).items()}


def hits(profiler: LineProfiler, name: str | None = None) -> dict[Any, int]:
    return {text: count for text, count in column(profiler, "hits", name).items() if count}


def peaks(profiler: LineProfiler, name: str | None = None) -> dict[Any, int]:
    """Peaks of the lines that were hit."""
    return {text: line.peak for text, line in lines(profiler, name).items() if line.hits}


def nets(profiler: LineProfiler, name: str | None = None) -> dict[Any, int]:
    """Net growth of the lines that were hit."""
    return {text: line.net for text, line in lines(profiler, name).items() if line.hits}


def decorated(name: str) -> Any:
    """The profiler behind `@profile` that has a function of this qualname."""
    profilers: Iterable[LineProfiler] = decorators._profilers
    found = [p for p in profilers if any(f.qualname == name for f in p.records().functions)]
    assert len(found) == 1, name
    return found[0]


def both_ways(function: Any) -> Iterator[tuple[LineProfiler, Any, Any]]:
    """The function under a LineProfiler, then decorated: (profiler, function to call, context to call it in)."""
    profiler = LineProfiler(function, device="cpu")
    yield profiler, function, profiler
    wrapped = profile(function, device="cpu")
    yield decorated(function.__qualname__), wrapped, contextlib.nullcontext()


def report(**values: Any) -> None:
    """Hand values to the test, as JSON."""
    with open(os.environ["TEST_RESULTS"], "a") as file:
        file.write(json.dumps(values) + "\n")


def report_lines(**profilers: Any) -> None:
    """Hand the figures of profilers to the test: {text: [hits, peak, net]}."""
    report(**{key: {t: [x.hits, x.peak, x.net] for t, x in lines(p).items() if x.hits} for key, p in profilers.items()})
