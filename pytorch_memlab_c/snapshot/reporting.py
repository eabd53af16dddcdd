"""From a snapshot to its report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..render.text import readable_size
from .holding import build_moment
from .lines import build_lines
from .memory import DeviceMemory
from .moments import MOST_FAILURES, failures_of, find_moments
from .places import Places
from .report_types import DeviceReport, LineFigures, SnapshotReport
from .reserving import build_reserves
from .timeline import build_timeline


def build_report(
    name: str,
    devices: Sequence[DeviceMemory],
    places: Places,
    at: tuple[str, ...],
    device: str | None,
    timeline: bool,
    **about: Any,
) -> SnapshotReport:
    """See ``Snapshot.report``; ``about``: what there is to say of the whole file."""
    chosen = [memory for memory in devices if device is None or device in (memory.name, memory.name.split()[0])]
    if device is not None and not chosen:
        known = ", ".join(memory.name for memory in devices)
        raise ValueError(f"the snapshot has no device {device!r}; it has {known or 'none'}")
    return SnapshotReport(file=name, devices=tuple(_device(memory, places, at, timeline) for memory in chosen), **about)


def _device(memory: DeviceMemory, places: Places, at: tuple[str, ...], timeline: bool) -> DeviceReport:
    wanted = find_moments(memory, at)
    lines = build_lines(memory, places)
    return DeviceReport(
        memory.name,
        memory.events_count,
        memory.seconds(memory.events_count),
        memory.start,
        memory.peaks["end"].levels,
        {name: (getattr(peak.levels, name), peak.moment) for name, peak in memory.peaks.items() if name != "end"},
        tuple(build_moment(memory, places, moment) for moment in wanted),
        lines,
        build_reserves(memory, places, wanted),
        len(failures_of(memory)),
        tuple(_notes(memory, lines)),
        build_timeline(memory, places, lines) if timeline else None,
    )


def _notes(memory: DeviceMemory, lines: tuple[LineFigures, ...]) -> list[str]:
    notes = []
    if not memory.events_count:
        notes.append("no events were recorded: this is what there was when the snapshot was taken, no more")
    elif memory.start.active:
        notes.append(
            f"{readable_size(memory.start.active)} were there before the recording, which began later than the "
            "program, or lost its start (max_entries)"
        )
    if not memory.has_segments:
        notes.append("the file has no segments: what was allocated before the recording is not known")
    if memory.lost:
        notes.append(f"{memory.lost:,} allocations are gone whose end was not recorded; each counts up to that")
    end = memory.peaks["end"].levels
    if memory.has_segments and end != memory.in_file:
        notes.append(
            f"the replay ends with {readable_size(end.active)} active and {readable_size(end.reserved)} reserved, "
            f"the file's segments with {readable_size(memory.in_file.active)} and "
            f"{readable_size(memory.in_file.reserved)}"
        )
    if memory.unequal:
        notes.append(
            f"the sizes of {memory.unequal:,} blocks are not what this version works out: the allocator, or its "
            "settings during the recording, were others"
        )
    if lines and all(line.place.kind != "line" for line in lines):
        notes.append("no stacks were recorded: sizes and segments alone")
    return notes + _failures_left_out(memory)


def _failures_left_out(memory: DeviceMemory) -> list[str]:
    count = len(failures_of(memory))
    return [f"{count:,} allocations failed; the first and the last ones are shown"] if count > MOST_FAILURES else []


def date_of(seconds: float) -> str:
    """A time since 1970 as local date and time; empty for 0."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) if seconds else ""
