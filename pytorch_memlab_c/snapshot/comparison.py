"""Snapshots beside each other: two runs, or the ranks of a job, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .places import Place
from .report_types import DeviceReport, SnapshotReport


class Row(NamedTuple):
    """A line of one device in several snapshots; 0 where it held nothing.

    ``peak``, ``at_peak`` (when the device's peak is reached) and ``live`` have a value for each snapshot.
    """

    device: str
    place: Place
    peak: tuple[int, ...]
    at_peak: tuple[int, ...]
    live: tuple[int, ...]


class Level(NamedTuple):
    """A figure of a device in several snapshots; None where the snapshot has no such device."""

    device: str
    name: str
    values: tuple[int | None, ...]


#: The figures of a device that are compared.
_FIGURES = ("peak active", "peak reserved", "active at the end", "reserved at the end")


def levels_of(reports: Sequence[SnapshotReport]) -> list[Level]:
    """The figures of every device."""
    return [
        Level(name, figure, tuple(_figure(_device(report, name), i) for report in reports))
        for name in device_names(reports)
        for i, figure in enumerate(_FIGURES)
    ]


def rows_of(reports: Sequence[SnapshotReport]) -> list[Row]:
    """Every line of every device, by the most that it held anywhere."""
    rows = []
    for name in device_names(reports):
        tables = [_table(_device(report, name)) for report in reports]
        for place in dict.fromkeys(place for table in tables for place in table):
            values = [table.get(place, (0, 0, 0)) for table in tables]
            rows.append(Row(name, place, *(tuple(value[i] for value in values) for i in range(3))))
    return sorted(rows, key=lambda row: (-max(row.peak), row.place))


def device_names(reports: Sequence[SnapshotReport]) -> list[str]:
    """The devices that any of the snapshots has."""
    return list(dict.fromkeys(device.name for report in reports for device in report.devices))


def _device(report: SnapshotReport, name: str) -> DeviceReport | None:
    return next((device for device in report.devices if device.name == name), None)


def _figure(device: DeviceReport | None, number: int) -> int | None:
    if device is None:
        return None
    return (device.peaks["active"][0], device.peaks["reserved"][0], device.end.active, device.end.reserved)[number]


def _table(device: DeviceReport | None) -> dict[Place, tuple[int, int, int]]:
    if device is None:
        return {}
    at_peak = {held.place: held.bytes for moment in device.moments if moment.kind == "peak" for held in moment.holders}
    return {line.place: (line.peak, at_peak.get(line.place, 0), line.live) for line in device.lines}
