"""Which lines keep more memory on every run: a leak, told apart from set-up, caches and what is given back.

A line's first run is set-up and is left out. Of the later ones the engine keeps a history: stretches of equally many
runs, each with the lowest value at the start of a run. A line is *growing* if that low keeps rising to the end, and does
not slow down. Where blocks are followed, the value is what the line itself holds, the bytes that it allocated and that
still live: so what another line frees again, and what other lines keep, does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

#: So many later runs, or outermost calls, are needed to speak of growth.
FEWEST = 4

GROWING, FREED_LATER, RESERVED = "growing", "freed later", "reserved"


class Stretch(NamedTuple):
    """Runs that followed each other. Bytes; ``low`` and ``level_low`` are the lowest at the start of a run,
    ``reserved_low`` at its end."""

    runs: int
    low: int
    level_low: int
    reserved_low: int
    net: int
    reserved_net: int


class History(NamedTuple):
    """A line's later runs on one device.

    ``live``: ``low`` is what the line itself holds; otherwise it is the device's allocated level.
    ``live_now``: what it held when this was read, -1 where that is not known. ``ended``: what it lost since the last run
    because profiled functions ended and their variables went. ``gross``: bytes allocated on the device from the first of
    the later runs to the last; ``gross_since``: from that to the end of the outermost profiled call; ``freed_since``: bytes
    freed then; ``freed_gap``: the most freed between two runs. ``runs`` are stretches of runs, ``calls`` have one sample
    for each outermost profiled call.
    """

    live: bool
    live_now: int
    ended: int
    gross: int
    gross_since: int
    freed_since: int
    freed_gap: int
    runs: tuple[Stretch, ...]
    calls: tuple[Stretch, ...]

    @classmethod
    def of(cls, raw: Sequence[Any] | None) -> History | None:
        """From the plain tuple or list of a snapshot or a JSON file."""
        if raw is None:
            return None
        history = cls(*raw)
        return history._replace(runs=_stretches(history.runs), calls=_stretches(history.calls))


class Growth(NamedTuple):
    """What a line keeps more of on every run. ``kind``: "growing"; "freed later": it was given back after the last run;
    "reserved": the allocator takes more from the device, though no more is allocated (fragmentation).
    """

    kind: str
    bytes_per_run: int


def _stretches(raw: Iterable[Sequence[int]]) -> tuple[Stretch, ...]:
    return tuple(Stretch(*values) for values in raw)


class HasGrowth(Protocol):
    """Figures of a line on a device, of which the history of its later runs is read."""

    @property
    def growth(self) -> History | None: ...


def growth_of(stats: HasGrowth) -> Growth | None:
    """The growth of a line on a device, or None."""
    history = stats.growth
    if history is None:
        return None
    calls = sum(stretch.runs for stretch in history.calls)
    runs = sum(stretch.runs for stretch in history.runs)
    samples = history.calls if calls >= FEWEST else history.runs
    per_sample = _kept(history, samples, across=calls >= FEWEST)
    if per_sample is not None:
        kind = FREED_LATER if _is_gone(history, 0 if calls >= FEWEST else history.ended) else GROWING
        return Growth(kind, round(per_sample / (_runs_a_call(runs, calls) if calls >= FEWEST else 1)))
    reserved = _fragmenting(samples)
    return None if reserved is None else Growth(RESERVED, round(reserved))


def _runs_a_call(runs: int, calls: int) -> float:
    """The first run is not among them, but others of its call may be."""
    return (runs + 1) / calls if runs % calls and (runs + 1) % calls == 0 else runs / calls


def _kept(history: History, samples: Sequence[Stretch], across: bool) -> float | None:
    rate = _rise([s.low for s in samples], [s.runs for s in samples])
    if rate is None:
        return None
    if not across and _given_back(history) and not _kept_after_all(history):
        return None
    return rate if history.live or _all_its_own(samples, rate) else None


def _rise(lows: Sequence[int], runs: Sequence[int]) -> float | None:
    """Bytes a run by which the lows rise, if they do to the end and without slowing down.

    The first quarter may be unsteady: caches fill, workspaces are made.
    """
    if len(lows) > FEWEST and runs[-1] * 2 < runs[0]:  # too short to tell
        lows, runs = lows[:-1], runs[:-1]
    if len(lows) < FEWEST:
        return None
    steps = [after - before for before, after in pairwise(lows)]
    late = len(steps) // 2
    if min(steps[len(steps) // 4 :]) < 0 or min(steps[late:]) <= 0:
        return None
    rate = sum(steps[late:]) / sum(runs[late:-1])
    overall = sum(steps) / sum(runs[:-1])
    slowing = rate < overall / 2 or steps[-1] / runs[-2] < rate / 4
    return None if slowing else rate


def _given_back(history: History) -> bool:
    """Whether what was kept inside one call went at its end, as a forward pass's activations go in backward: far more was
    freed than ever between two runs."""
    kept = history.runs[-1].low - history.runs[0].low
    return history.freed_since >= kept / 2 and history.freed_since > 1.5 * history.freed_gap


def _kept_after_all(history: History) -> bool:
    """Whether that was memory of others: the line still held its own when its function, or a caller, ended. What is kept
    from a short beginning, such as layers or data, is no leak: the longer part of the program comes after it."""
    known = history.live and history.live_now >= 0
    return known and not _is_gone(history, history.ended) and history.gross_since <= history.gross


def _is_gone(history: History, ended: int) -> bool:
    """Within one call, what goes because a function ended was kept as long as it could be."""
    first, last = history.runs[0].low, history.runs[-1].low
    return history.live and 0 <= history.live_now < (first + last) / 2 - ended


def _all_its_own(samples: Sequence[Stretch], rate: float) -> bool:
    """Where only the device's level is known: the line takes memory to the end, and no more than the level rises by."""
    late = samples[len(samples) // 2 :]
    net = sum(s.net for s in late) / sum(s.runs for s in late)
    return min(s.net for s in late) > 0 and net <= rate * 1.05


def _fragmenting(samples: Sequence[Stretch]) -> float | None:
    """Reserved bytes rise where this line runs, though allocated ones do not. They rise by whole segments, so quarters of
    the time are compared."""
    if len(samples) < FEWEST or _rise([s.level_low for s in samples], [s.runs for s in samples]) is not None:
        return None
    quarters = [_quarter(samples, i) for i in range(4)]
    lows = [min(s.reserved_low for s in quarter) for quarter in quarters]
    levels = [min(s.level_low for s in quarter) for quarter in quarters]
    rising = lows[0] <= lows[1] < lows[2] < lows[3] and sum(s.reserved_net for s in quarters[3]) > 0
    if not rising or lows[3] - lows[1] <= levels[3] - levels[1]:
        return None
    return (lows[3] - lows[1]) / sum(s.runs for quarter in quarters[1:3] for s in quarter)


def _quarter(samples: Sequence[Stretch], number: int) -> Sequence[Stretch]:
    return samples[len(samples) * number // 4 : len(samples) * (number + 1) // 4]
