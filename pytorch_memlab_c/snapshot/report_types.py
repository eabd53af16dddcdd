"""A report about a snapshot as plain values: what text, page, JSON and data frames are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .memory import Levels
from .places import Place


class Held(NamedTuple):
    """What a line (or a function) holds at a moment."""

    place: Place
    bytes: int
    blocks: int


@dataclass(frozen=True)
class Call:
    """A node of the tree of calls: the bytes that it and all below it hold."""

    place: Place
    bytes: int
    blocks: int
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Moment:
    """Who holds what at one moment. ``kind``: "peak", "oom", "end" or "chosen"."""

    kind: str
    number: int  # events done
    seconds: float | None  # since the first event
    levels: Levels
    holders: tuple[Held, ...]  # by line, the most first; they add up to `levels.active`
    functions: tuple[Held, ...]  # by function, with what it has called
    tree: tuple[Call, ...]
    asked: int = 0  # of an allocation that failed
    device_free: int = 0
    at: Place | None = None  # the line that failed


class Growth(NamedTuple):
    """What a line keeps more of, to the end of the recording."""

    bytes: int  # more at the end than after the first quarter
    each_time: float  # bytes for each time that the line allocates
    a_second: float | None


class LineFigures(NamedTuple):
    """A line over the whole recording, in bytes."""

    place: Place
    allocated: int
    times: int
    peak: int
    live: int
    live_blocks: int
    before: int  # it held at the start already
    median_life: float | None  # seconds, or events where the file has no times
    growth: Growth | None


class Pool(NamedTuple):
    """Segments of one pool and stream at a moment. ``free``: reserved and not active."""

    pool: str
    stream: int
    segments: int
    reserved: int
    active: int
    free: int
    largest_free: int
    empty_segments: int
    empty_bytes: int  # what empty_cache() would give back


class Pinned(NamedTuple):
    """A segment that few bytes keep from being given back."""

    address: int
    size: int
    active: int
    pool: str
    stream: int
    largest_free: int
    holders: tuple[Held, ...]


@dataclass(frozen=True)
class Reserve:
    """What is reserved and not allocated at a moment.

    ``expandable``: what would be reserved with expandable segments; None where they are in use.
    """

    kind: str
    number: int
    reserved: int
    active: int
    pools: tuple[Pool, ...]
    pinned: tuple[Pinned, ...]
    expandable: int | None


@dataclass(frozen=True)
class Timeline:
    """The device over its recording, in points: what there was when most was active in each stretch of time.

    ``layers`` are lines, each with its bytes at every point; what they leave of `active` is the rest.
    """

    moments: tuple[int, ...]
    seconds: tuple[float, ...] | None
    allocated: tuple[int, ...]
    active: tuple[int, ...]
    reserved: tuple[int, ...]
    layers: tuple[tuple[Place, tuple[int, ...]], ...]


@dataclass(frozen=True)
class DeviceReport:
    """All about one device."""

    name: str
    events: int
    seconds: float | None
    start: Levels
    end: Levels
    peaks: dict[str, tuple[int, int]]  # of each level: bytes and moment
    moments: tuple[Moment, ...]
    lines: tuple[LineFigures, ...]
    reserve: tuple[Reserve, ...]
    failures: int
    notes: tuple[str, ...]
    timeline: Timeline | None = None


@dataclass(frozen=True)
class SnapshotReport:
    """All about one file."""

    file: str
    frames: str
    skip: tuple[str, ...]
    taken: float  # seconds since 1970; 0: not known
    devices: tuple[DeviceReport, ...]
    notes: tuple[str, ...]
