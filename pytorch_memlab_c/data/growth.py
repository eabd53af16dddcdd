"""Which lines hold more after every run, told apart from set-up, caches and what is given back. See docs/leaks.md.

The engine samples what a line holds, the bytes that it allocated and that still live, as each of its runs begins. A
line *grows* if that rises over its runs, to the end, and is still held then. Where the line also holds what comes and
goes, such as a batch that the next run replaces, what it made before its last run decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, pairwise
from statistics import median
from typing import Any, NamedTuple, Protocol

#: So many samples are needed to speak of growth.
FEWEST = 4

#: PyTorch's allocators of GPUs do not split off less than this from a block that is larger than this.
_ROUNDING = 1 << 20


class Stretch(NamedTuple):
    """Samples that followed each other, and the runs that they stand for.

    Bytes: ``held`` is the lowest that the line held as a run began, ``old`` the lowest of what it had made before its
    last run.
    """

    samples: int
    runs: int
    held: int
    old: int


class History(NamedTuple):
    """What a line held on one device as its runs began, without the first run that allocated.

    ``live``: what it held at the end, when recording stopped or this was read. ``end``: the same with what went only
    because functions ended, or after the last profiled one. ``runs`` are stretches with a sample for each run,
    ``calls`` with one for each call of the line's function. ``modules``: how many modules the function is a method of,
    0 if it is none.
    ``parts``: a loop in that function goes through the parts of a module.
    """

    live: int
    end: int
    runs: tuple[Stretch, ...]
    calls: tuple[Stretch, ...]
    modules: int = 0
    parts: bool = False

    @classmethod
    def of(cls, raw: Sequence[Any] | None) -> History | None:
        """From the list in a JSON file."""
        if raw is None:
            return None
        history = cls(*raw)
        return history._replace(runs=_stretches(history.runs), calls=_stretches(history.calls))

    @classmethod
    def of_older(cls, raw: Sequence[Any] | None) -> History | None:
        """From a JSON file of a version that kept the device's levels too: what the line held is taken over."""
        if raw is None:
            return None
        of_line, live, ended, *_, runs, _ = raw
        held = tuple(Stretch(count, count, low, low) for count, low, *_ in runs)
        return cls(live, live + ended, held, ()) if of_line and live >= 0 else None


class Growth(NamedTuple):
    """What a line holds more of after every run, how often it ran, and what it holds at the end."""

    bytes_per_run: int
    runs: int
    held: int


def _stretches(raw: Iterable[Sequence[int]]) -> tuple[Stretch, ...]:
    return tuple(Stretch(*values) for values in raw)


class HasGrowth(Protocol):
    """Figures of a line on a device, of which the history of what it held is read."""

    @property
    def growth(self) -> History | None:
        """The history of the later runs; None where there is none."""


def growth_of(stats: HasGrowth, device: str) -> Growth | None:
    """The growth of a line on a device, or None."""
    history = stats.growth
    if history is None or _ran_once_on_each_module(history):
        return None
    rounding = 0 if device == "cpu" else _ROUNDING
    rate = None if history.parts else _rate_of(history.runs, history.end, rounding)
    if rate is None and (history.parts or _falls(history.runs)):
        rate = _rate_of(history.calls, history.end, rounding)
    if rate is None:
        return None
    return Growth(max(1, round(rate)), 1 + sum(stretch.runs for stretch in history.runs), history.live)


def _falls(samples: Sequence[Stretch]) -> bool:
    """Whether something is given back from time to time; calls may then tell what stays."""
    return any(after.held < before.held for before, after in pairwise(samples))


def _rate_of(samples: Sequence[Stretch], end: int, rounding: int) -> float | None:
    runs = [stretch.runs for stretch in samples]
    held = [min(stretch.held, end) for stretch in samples]
    rate = _rise(held, runs)
    if rate is None and rounding:
        rate = _rounded_rise([*held, end], runs, rounding)
    if rate is None and samples[-1].old < end:  # else the last runs added nothing
        rate = _rise([min(stretch.old, end) for stretch in samples], runs)
    return rate


def _rounded_rise(values: list[int], runs: Sequence[int], rounding: int) -> float | None:
    """The same where a block may be larger than asked for: the one that replaces it can be larger, and fit better.

    So falls of less than that are none, if all in all the values rise by more.
    """
    lowest = list(accumulate(reversed(values), min))[::-1]  # of those from there on
    falls = [(before, before - after) for before, after in pairwise(values) if after < before]
    if any(before <= rounding or fall >= rounding for before, fall in falls):
        return None
    if lowest[-1] - lowest[len(lowest) // 2] <= rounding or _rise(lowest, runs) is None:
        return None
    typical = median((after - before) / count for (before, after), count in zip(pairwise(values), runs))
    return typical if typical > 0 else None


def _ran_once_on_each_module(history: History) -> bool:
    """One forward pass through 32 layers, or the making of 32 layers, is one run."""
    return sum(stretch.samples for stretch in history.calls) < FEWEST * history.modules


def _rise(values: Sequence[int], runs: Sequence[int]) -> float | None:
    """Bytes a run by which the values rise, if they do to the end.

    The first quarter may be unsteady: caches fill, workspaces are made.
    """
    if len(values) < FEWEST:
        return None
    first = (len(values) - 1) // 4
    steps = [(after - before, count) for (before, after), count in zip(pairwise(values), runs)][first:]
    if min(rise for rise, _ in steps) < 0 or min(_thirds(steps)) <= 0:
        return None
    return None if _slows_down(steps) or _has_stopped(steps) else _typical_rate(steps)


def _rate(steps: Sequence[tuple[int, int]]) -> float:
    return sum(rise for rise, _ in steps) / sum(runs for _, runs in steps)


def _thirds(steps: Sequence[tuple[int, int]]) -> list[float]:
    return [_rate(steps[len(steps) * i // 3 : len(steps) * (i + 1) // 3]) for i in range(3)]


def _slows_down(steps: list[tuple[int, int]]) -> bool:
    """As a cache does that is nearly full. A single large step says nothing, nor do a few of varying sizes."""
    if len(steps) < 6:
        return False
    largest = steps.index(max(steps))
    early, middle, late = _thirds(steps[:largest] + steps[largest + 1 :])
    return early > middle > late and late < early / 4


def _has_stopped(steps: Sequence[tuple[int, int]]) -> bool:
    """Whether the last rise is longer ago than it ever was between two rises."""
    pauses = [len(list(group)) if flat else 0 for flat, group in groupby(steps, lambda step: step[0] == 0)]
    return pauses[-1] > max(pauses[:-1], default=0)


def _typical_rate(steps: list[tuple[int, int]]) -> float:
    """The median where each step is one run that holds more; else the mean without the two extremes."""
    if all(rise > 0 and runs == 1 for rise, runs in steps):
        return median(rise for rise, _ in steps)
    return _rate(sorted(steps, key=lambda step: step[0] / step[1])[1:-1])
