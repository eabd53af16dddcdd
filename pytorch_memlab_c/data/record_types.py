"""The plain values a report is made of: figures of a line on a device, lines, functions.

Nothing here holds a frame, a tensor or an exception; a code object is kept so that its function
can be asked for by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

from .device_names import TARGET
from .growth import History
from .saved_types import Saved


class Stats(NamedTuple):
    """One line's figures on one device, in bytes unless named otherwise.

    ``*_peak`` and ``*_current`` are the maxima over all runs of the highest value within a segment
    and of the value at its end. ``net_*`` is allocated at the end minus at the start.
    """

    runs: int
    active_peak: int
    allocated_peak: int
    reserved_peak: int
    active_current: int
    allocated_current: int
    reserved_current: int
    net_first: int
    net_sum: int
    net_max: int
    net_last: int
    gross_bytes: int
    allocations: int
    #: Maxima of the columns in ``LineRecords.extra_columns``, or None where they were not read.
    extra: tuple[int | None, ...] | None = None
    #: What the line held over its runs; None where it did not run again after it had allocated.
    growth: History | None = None
    #: The largest net of a later run; None where there is none.
    net_later_max: int | None = None

    @property
    def net_later(self) -> int | None:
        """The net of all runs but the first."""
        return None if self.net_later_max is None else self.net_sum - self.net_first

    @property
    def net_later_last(self) -> int | None:
        """The net of the last run, if it is not the first."""
        return None if self.net_later_max is None else self.net_last


#: A device on which nothing has happened.
NOTHING = Stats._make([*[0] * 13, None, None, None])
#: The fields that are maxima over runs.
MAXIMA = tuple(name for name in Stats._fields if name.endswith(("_peak", "_current")))


@dataclass(frozen=True)
class LineRecord:
    """One source line: its hits and its figures by device.

    ``charged``: the devices that were the target when a segment of the line ended, oldest first.
    ``stats``: "target" (the figures of those segments) and each device's own over all segments.
    ``saved``: what autograd kept of it, by device, where that was asked for.
    """

    line: int
    hits: int
    charged: tuple[str, ...]
    stats: Mapping[str, Stats]
    saved: Mapping[str, Saved] = field(default_factory=dict)

    def on(self, device: str) -> Stats | None:
        """Its figures on a device: all 0 where it ran, but only before the device's first event."""
        if device in self.stats or TARGET not in self.stats:
            return self.stats.get(device)
        return NOTHING._replace(runs=self.stats[TARGET].runs)


@dataclass(frozen=True)
class FunctionRecord:
    """One code object.

    ``calls`` counts entries, 0 is never called; ``source`` starts at ``first_line`` (None: not available); ``lines``
    hold what was recorded, in line order.
    """

    qualname: str
    module: str | None
    filename: str
    first_line: int
    def_line: int
    source: tuple[str, ...] | None
    calls: int
    lines: tuple[LineRecord, ...]
    code: CodeType | None = field(default=None, compare=False, repr=False)

    @property
    def ran(self) -> bool:
        """Whether it was called, or one of its lines ran (a generator that was started before)."""
        return self.calls > 0 or bool(self.lines)

    def __getstate__(self) -> dict[str, Any]:
        """Code objects cannot be pickled; a copy is asked for by name instead."""
        return {**self.__dict__, "code": None}


def merge_entry(entry: LineRecord, line: LineRecord) -> LineRecord:
    """The ``def`` line's own figures with those of the function's entry put in.

    Both belong to one row when the function is decorated and written in one line. The entry is no
    run of the line: it raises the maxima, and leaves runs and net to the line.
    """
    stats = dict(entry.stats)
    for device, own in line.stats.items():
        stats[device] = _merge_stats(stats[device], own) if device in stats else own
    charged = tuple(dict.fromkeys(entry.charged + line.charged))
    return LineRecord(line.line, entry.hits + line.hits, charged, stats, line.saved or entry.saved)


def _merge_stats(entry: Stats, own: Stats) -> Stats:
    if not own.runs:
        return entry
    maxima = {name: max(getattr(entry, name), getattr(own, name)) for name in MAXIMA}
    return own._replace(**maxima, extra=_merge_extra(entry.extra, own.extra))


def _merge_extra(
    first: tuple[int | None, ...] | None, second: tuple[int | None, ...] | None
) -> tuple[int | None, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    return tuple(b if a is None else a if b is None else max(a, b) for a, b in zip(first, second))
