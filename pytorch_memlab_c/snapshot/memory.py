"""One device of a snapshot: its events and allocations as arrays, its levels, and who holds how much at a moment."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy

from . import rows
from .places import BEFORE, Places

HOST = -1


class Levels(NamedTuple):
    """Bytes."""

    allocated: int
    active: int
    reserved: int


class Peak(NamedTuple):
    """The levels at the first moment of the highest value."""

    levels: Levels
    moment: int


class DeviceMemory:
    """Moments are numbers of events done; 0 is the start of the recording."""

    def __init__(self, data: Any, trace: int, name: str) -> None:
        self.name = name
        self.is_host = data.devices()[trace] == HOST
        self._data, self._trace = data, trace
        start, in_file, self.events_count, self.lost, self.guessed, self.unequal = data.replay(trace)
        self.start, self.in_file = Levels(*start), Levels(*in_file)
        self.has_segments: bool = data.has_segments

    @functools.cached_property
    def events(self) -> numpy.ndarray:
        """The events: rows.EVENT."""
        return numpy.frombuffer(self._data.events(self._trace), rows.EVENT)

    @functools.cached_property
    def allocations(self) -> numpy.ndarray:
        """The allocations: rows.ALLOCATION."""
        return numpy.frombuffer(self._data.allocations(self._trace), rows.ALLOCATION)

    @functools.cached_property
    def actions(self) -> numpy.ndarray:
        """What each event is: an index into rows.ACTIONS."""
        return (self.events["packed"] >> rows.SETTING_BITS).astype("u1")

    @functools.cached_property
    def settings(self) -> list[tuple[int, int, int, int, int]]:
        """(stream, pool, pool, compile context, metadata) by number."""
        found: list[tuple[int, int, int, int, int]] = self._data.settings()
        return found

    @functools.cached_property
    def peaks(self) -> dict[str, Peak]:
        """The highest allocated, active and reserved bytes, and the end."""
        raw = self._data.peaks(self._trace)
        return {name: Peak(Levels(*peak[:3]), peak[3]) for name, peak in zip((*Levels._fields, "end"), raw)}

    def stretches(self, ends: numpy.ndarray) -> numpy.ndarray:
        """The extremes of each stretch of moments; see rows.STRETCH."""
        raw = self._data.stretches(self._trace, numpy.ascontiguousarray(ends, "u4"))
        return numpy.frombuffer(raw, rows.STRETCH)

    def levels_at(self, moment: int) -> Levels:
        """The levels once so many events are done."""
        stretch = self.stretches(numpy.array([max(moment - 1, 0), moment]))[1 if moment else 0]
        return Levels(*(int(stretch[name]) for name in Levels._fields))

    def figures(self, places: Places, stretches: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        """By group: rows.FIGURES, and the least that each held in each stretch."""
        count = len(places.places)
        raw, lows = self._data.figures(self._trace, numpy.ascontiguousarray(places.of_stack), count, stretches)
        return numpy.frombuffer(raw, rows.FIGURES), numpy.frombuffer(lows, "u8").reshape(count, stretches)

    def spans(self, moment: int) -> numpy.ndarray:
        """Memory taken from the device, by address."""
        return numpy.frombuffer(self._data.spans(self._trace, moment), rows.SPAN)

    def expandable(self, moments: list[int]) -> list[int]:
        """What expandable segments would reserve at rising moments."""
        raw = self._data.expandable(self._trace, numpy.array(moments, "u4"))
        return [int(value) for value in numpy.frombuffer(raw, "u8")]

    def live(self, moment: int) -> numpy.ndarray:
        """The allocations that are active at a moment."""
        return self.allocations[(self.allocations["made"] <= moment) & (self.allocations["freed"] > moment)]

    def bytes_by_stack(self, moment: int) -> dict[int, tuple[int, int]]:
        """Active bytes and blocks of each stack; -1: what was there before, with no stack."""
        live = self.live(moment)
        stacks = live["stack"].astype("i8")
        stacks[(live["made"] == 0) & (live["stack"] == 0)] = -1
        return _sums(stacks, live["size"])

    def bytes_by_group(self, places: Places, moment: int) -> dict[int, tuple[int, int]]:
        """Active bytes and blocks of each group of stacks."""
        live = self.live(moment)
        groups = places.of_stack[live["stack"]].astype("i8")
        groups[(live["made"] == 0) & (live["stack"] == 0)] = BEFORE
        return _sums(groups, live["size"])

    def seconds(self, moment: int) -> float | None:
        """Since the first event; None where the file has no times."""
        if not self.events_count or not self._data.timed:
            return None
        times = self.events["time"]
        return (int(times[max(moment - 1, 0)]) - int(times[0])) / 1e6

    @property
    def last_time(self) -> float:
        """When the last event was, in seconds since 1970; 0 where that is not known."""
        return int(self.events["time"][-1]) / 1e6 if self.events_count else 0.0


def _sums(keys: numpy.ndarray, sizes: numpy.ndarray) -> dict[int, tuple[int, int]]:
    found, inverse, counts = numpy.unique(keys, return_inverse=True, return_counts=True)
    sums = numpy.zeros(len(found), "u8")
    numpy.add.at(sums, inverse, sizes)
    return {int(key): (int(size), int(count)) for key, size, count in zip(found, sums, counts)}
