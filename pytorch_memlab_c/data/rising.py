"""By how many bytes a run what a line holds rises, if it does to the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

#: So many samples are needed to speak of growth.
FEWEST = 4


class Stretch(NamedTuple):
    """Samples that followed each other, and the runs that they stand for.

    Bytes: ``held`` is the lowest that the line held as a run began, ``old`` the lowest of what it had made before its
    last run.
    """

    samples: int
    runs: int
    held: int
    old: int


def falls(values: Sequence[int]) -> bool:
    """Whether a value is less than the one before it."""
    return any(after < before for before, after in pairwise(values))


def rate_of(samples: Sequence[Stretch], end: int, rounding: int) -> float | None:
    """Bytes a run, or None. ``end``: what is held at the end; ``rounding``: a block may be so much too large."""
    runs = [stretch.runs for stretch in samples]
    held, old = ([min(value, end) for value in values] for values in zip(*((s.held, s.old) for s in samples)))
    last, rate = samples[-1].held, _rise(held, runs)
    of_old = _rise(old, runs) if samples[-1].old < end else None  # else the last runs added nothing
    rates = [rise / count for rise, count in _steps(old, runs)]
    if of_old and min(rates) == max(rates) and not _swells(samples):
        return of_old  # each run leaves the same, whatever comes and goes beside it
    if rate is None and rounding:
        rate = _rounded_rise([*held, end], runs, rounding, replaced=not any(old))
    if rate is None and of_old and (end != last or falls([s.held for s in samples])):  # else a window has filled
        rate = of_old
    return rate


def _swells(samples: Sequence[Stretch]) -> bool:
    """Whether each run makes more than those long before it, as a concatenation does."""
    made = [stretch.held - stretch.old for stretch in samples]
    half = len(made) // 2
    return min(made[half:]) > max(made[:half])


def _rounded_rise(values: list[int], runs: Sequence[int], rounding: int, replaced: bool) -> float | None:
    """The same where a block may be larger than asked for: the one that replaces it can be larger, and fit better.

    So falls of less than that are none, if all in all the values rise by more. ``replaced``: each run replaces all that
    the line made before; then no window fills, and the first half tells as much as the second.
    """
    lowest = list(accumulate(reversed(values), min))[::-1]  # of those from there on
    drops = [(before, before - after) for before, after in pairwise(values) if after < before]
    fewest, start = (FEWEST, _unsteady(values)) if replaced else (3 * FEWEST, len(values) // 2)
    if sum(runs) < fewest or any(before <= rounding or fall >= rounding for before, fall in drops):
        return None
    if lowest[-1] - lowest[start] <= rounding or _rise(lowest, runs, pauses=replaced) is None:
        return None
    typical = median((after - before) / count for (before, after), count in zip(pairwise(values), runs))
    return typical if typical > 0 else None


def _rise(values: Sequence[int], runs: Sequence[int], pauses: bool = False) -> float | None:
    """Bytes a run by which the values rise, if they do to the end. ``pauses``: however long they last."""
    if len(values) < FEWEST:
        return None
    steps = _steps(values, runs)
    if min(rise for rise, _ in steps) < 0 or min(_thirds(steps)) <= 0:
        return None
    return None if _slows_down(steps) or not pauses and _has_stopped(steps) else _typical_rate(steps)


def _unsteady(values: Sequence[Any]) -> int:
    """How many of the first may be unsteady: a quarter. Caches fill, workspaces are made."""
    return (len(values) - 1) // 4


def _steps(values: Sequence[int], runs: Sequence[int]) -> list[tuple[int, int]]:
    """By how much the values rise from one to the next, in how many runs, without the unsteady ones."""
    return [(after - before, count) for (before, after), count in zip(pairwise(values), runs)][_unsteady(values) :]


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
