"""A recording as a few thousand points, however many events it has: sums, drawn by the page."""

from __future__ import annotations

import numpy

from .memory import DeviceMemory
from .places import BEFORE, Place, Places
from .report_types import LineFigures, Timeline

POINTS = 2000
#: Lines that have a layer of their own in the data; the page draws the largest, and lists all of them.
_LAYERS = 40


def build_timeline(memory: DeviceMemory, places: Places, lines: tuple[LineFigures, ...]) -> Timeline | None:
    """None where nothing was recorded."""
    if not memory.events_count:
        return None
    stretches = memory.stretches(_ends(memory))
    moments = stretches["moment"]
    layers = _layers(memory, places, moments, lines)
    seconds = None
    if memory.seconds(0) is not None:
        times = memory.events["time"]
        seconds = tuple(
            round(float(t), 6) for t in (times[numpy.maximum(moments.astype("i8") - 1, 0)] - times[0]) / 1e6
        )
    return Timeline(
        tuple(map(int, moments)),
        seconds,
        _column(stretches, "allocated"),
        _column(stretches, "active"),
        _column(stretches, "reserved"),
        layers,
    )


def _column(stretches: numpy.ndarray, name: str) -> tuple[int, ...]:
    return tuple(map(int, stretches[name]))


def _ends(memory: DeviceMemory) -> numpy.ndarray:
    """The end of each stretch: of equal times, and none without an event."""
    count = memory.events_count
    even = numpy.linspace(0, count, min(POINTS, count) + 1).astype("u4")[1:]
    if memory.seconds(0) is None:
        return even
    times = memory.events["time"]
    edges = numpy.linspace(times[0], times[-1], POINTS // 2 + 1)[1:]
    by_time = numpy.searchsorted(times, edges, side="right").astype("u4")
    by_count = even[:: 2 if len(even) > POINTS // 2 else 1]  # a burst of events is not one point
    return numpy.unique(numpy.concatenate([by_time, by_count, numpy.array([count], "u4")]))


def _layers(
    memory: DeviceMemory, places: Places, moments: numpy.ndarray, lines: tuple[LineFigures, ...]
) -> tuple[tuple[Place, tuple[int, ...]], ...]:
    """The bytes of the largest lines at each point: added where an allocation is made, taken where it is freed."""
    shown = {line.place: i for i, line in enumerate(lines[:_LAYERS])}
    layer_of_group = numpy.array([shown.get(place, -1) for place in places.places], "i8")
    allocations = memory.allocations
    groups = places.of_stack[allocations["stack"]].astype("i8")
    groups[(allocations["made"] == 0) & (allocations["stack"] == 0)] = BEFORE
    layers = layer_of_group[groups]
    kept = layers >= 0
    width = len(moments) + 1
    changes = numpy.zeros(max(len(shown), 1) * width, "i8")
    for edge, sign in (("made", 1), ("freed", -1)):
        at = numpy.searchsorted(moments, allocations[edge][kept], side="left")
        sizes = allocations["size"][kept].astype("i8") * sign
        numpy.add.at(changes, layers[kept] * width + numpy.minimum(at, width - 1), sizes)
    sums = changes.reshape(-1, width).cumsum(axis=1)[:, :-1]
    return tuple((place, tuple(map(int, sums[i]))) for place, i in shown.items())
