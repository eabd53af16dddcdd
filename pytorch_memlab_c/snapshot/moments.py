"""The moments that are asked for: the peak, failed allocations, the end, a time, an event."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy

from . import rows
from .memory import DeviceMemory

#: Failed allocations whose holders are shown: the first and the last ones of many.
MOST_FAILURES = 4

_CHOICES = 'peak, oom, end, a time ("12.5s"), an event ("#1200") or a part ("50%")'


class Wanted(NamedTuple):
    """A moment to report; of a failed allocation also what was asked for, and the stack that asked."""

    kind: str
    number: int
    asked: int = 0
    device_free: int = 0
    stack: int = 0


def failures_of(memory: DeviceMemory) -> list[Wanted]:
    """All allocations of the recording that failed."""
    found = numpy.flatnonzero(memory.actions == rows.OOM)
    events = memory.events
    return [
        Wanted("oom", int(i) + 1, int(events["size"][i]), int(events["address"][i]), int(events["stack"][i]))
        for i in found
    ]


def find_moments(memory: DeviceMemory, wanted: Iterable[str]) -> list[Wanted]:
    """The moments by name, in the order given.

    Raises:
        ValueError: not a moment; the message says what is one.
    """
    return [moment for text in wanted for moment in _find(memory, text)]


def _find(memory: DeviceMemory, text: str) -> Iterator[Wanted]:
    if text == "peak":
        yield Wanted("peak", memory.peaks["active"].moment)
    elif text == "end":
        yield Wanted("end", memory.events_count)
    elif text == "oom":
        failures = failures_of(memory)
        half = MOST_FAILURES // 2
        yield from failures if len(failures) <= MOST_FAILURES else failures[:half] + failures[-half:]
    else:
        yield Wanted("chosen", _number(memory, text))


def _number(memory: DeviceMemory, text: str) -> int:
    last: int = memory.events_count
    if match := re.fullmatch(r"#(\d+)", text):
        if int(match[1]) > last:
            raise ValueError(f"{text}: there are {last:,} events")
        return int(match[1])
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", text):
        return min(last, int(last * float(match[1]) / 100 + 0.5))
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)s", text):
        return _at_time(memory, float(match[1]))
    raise ValueError(f"{text!r} is no moment; give {_CHOICES}")


def _at_time(memory: DeviceMemory, seconds: float) -> int:
    if memory.seconds(0) is None:
        raise ValueError(f"{seconds}s: the file has no times; give an event or a part")
    times = memory.events["time"]
    return int(numpy.searchsorted(times, times[0] + seconds * 1e6, side="right"))
