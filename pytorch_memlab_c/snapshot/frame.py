"""A snapshot as pandas data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import rows
from .memory import DeviceMemory
from .places import BEFORE, Places
from .report_types import DeviceReport, SnapshotReport
from .source_text import SourceText

if TYPE_CHECKING:
    import pandas

_SIZES = ("peak", "at_peak", "live", "live_blocks", "allocated", "times", "before")


def lines_frame(report: SnapshotReport) -> pandas.DataFrame:
    """See ``Snapshot.to_dataframe``."""
    import pandas

    source = SourceText(report.taken)
    found = [row for device in report.devices for row in _line_rows(device, source)]
    columns = ("device", "kind", "file", "line", "function", *_SIZES, "median_life", "growth", "code")
    frame = pandas.DataFrame(found, columns=list(columns))
    frame = frame.astype({name: "int64" for name in _SIZES} | {"line": "Int64", "growth": "Int64"})
    frame.attrs["notes"] = [*report.notes, *(note for device in report.devices for note in device.notes)]
    frame.attrs["peaks"] = {device.name: device.peaks["active"][0] for device in report.devices}
    return frame


def _line_rows(device: DeviceReport, source: SourceText) -> list[tuple[Any, ...]]:
    at_peak = {held.place: held.bytes for moment in device.moments[:1] for held in moment.holders}
    return [
        (
            device.name,
            line.place.kind,
            line.place.filename or None,
            line.place.line or None,
            line.place.function or None,
            line.peak,
            at_peak.get(line.place, 0),
            line.live,
            line.live_blocks,
            line.allocated,
            line.times,
            line.before,
            line.median_life,
            line.growth.bytes if line.growth else None,
            source.of(line.place) or None,
        )
        for line in device.lines
    ]


def allocations_frame(devices: Sequence[DeviceMemory], places: Places, device: str | None) -> pandas.DataFrame:
    """See ``Snapshot.allocations_dataframe``."""
    import pandas

    chosen = [memory for memory in devices if device is None or device in (memory.name, memory.name.split()[0])]
    frames = [_allocations_of(memory, places) for memory in chosen]
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()


def _allocations_of(memory: DeviceMemory, places: Places) -> pandas.DataFrame:
    import pandas

    allocations = memory.allocations
    groups = places.of_stack[allocations["stack"]].astype("i8")
    groups[(allocations["made"] == 0) & (allocations["stack"] == 0)] = BEFORE
    settings = numpy.array([(setting[0], f"{setting[1]},{setting[2]}") for setting in memory.settings], object)
    settings = settings.reshape(-1, 2)
    data: dict[str, Any] = {"device": numpy.full(len(allocations), memory.name, object)}
    data |= {name: allocations[name].astype("i8") for name in ("address", "size", "requested")}
    data |= {name: _moments(allocations[name]) for name in ("made", "released", "freed")}
    data |= {f"{name}_seconds": _seconds(memory, allocations[name]) for name in ("made", "freed")}
    data |= {name: _of_places(places, groups, name) for name in ("kind", "filename", "line", "function")}
    data["stream"] = settings[allocations["setting"], 0] if len(settings) else []
    data["pool"] = settings[allocations["setting"], 1] if len(settings) else []
    return pandas.DataFrame(data).rename(columns={"filename": "file"})


def _moments(values: numpy.ndarray) -> Any:
    """Numbers of events, missing where it did not happen."""
    import pandas

    return pandas.arrays.IntegerArray(values.astype("i8"), values == rows.NEVER)


def _seconds(memory: Any, values: numpy.ndarray) -> numpy.ndarray:
    """NaN where it is not in the recording."""
    seconds = numpy.full(len(values), numpy.nan)
    known = (values > 0) & (values != rows.NEVER)
    if memory.seconds(0) is not None:
        times = memory.events["time"]
        seconds[known] = (times[values[known] - 1] - times[0]) / 1e6
    return seconds


def _of_places(places: Any, groups: numpy.ndarray, name: str) -> numpy.ndarray:
    values = numpy.array([getattr(place, name) or None for place in places.places], object)
    chosen: numpy.ndarray = values[groups]
    return chosen
