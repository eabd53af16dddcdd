"""Each line over the whole recording, and which of them keep more and more."""

from __future__ import annotations

from itertools import pairwise

import numpy

from .memory import DeviceMemory
from .places import BEFORE, Places
from .report_types import Growth, LineFigures

#: The recording in so many stretches of equally many events: the least that a line holds in each shows what it keeps.
STRETCHES = 16
_QUARTER = (STRETCHES - 1) // 4
#: Lines that allocate fewer times than this over the later stretches are set-up.
_FEWEST_TIMES = 8


def build_lines(memory: DeviceMemory, places: Places) -> tuple[LineFigures, ...]:
    """All lines that have held anything, the highest peak first."""
    figures, lows = memory.figures(places, STRETCHES)
    between = _times_between(memory, places)
    life = 1e-6 if memory.seconds(0) is not None else 1.0
    seconds = memory.seconds(memory.events_count)
    lines = []
    for group in numpy.flatnonzero((figures["times"] > 0) | (figures["before"] > 0)):
        row = figures[group]
        lines.append(
            LineFigures(
                places.places[group],
                int(row["allocated"]),
                int(row["times"]),
                int(row["peak"]),
                int(row["live"]),
                int(row["live_blocks"]),
                int(row["before"]),
                int(row["median_life"]) * life if row["median_life"] >= 0 else None,
                None if group == BEFORE else growth_of([int(low) for low in lows[group]], int(between[group]), seconds),
            )
        )
    return tuple(sorted(lines, key=lambda line: (-line.peak, line.place)))


def _times_between(memory: DeviceMemory, places: Places) -> numpy.ndarray:
    """How often each group allocates from the end of the first quarter to the last stretch."""
    made, count = memory.allocations["made"], memory.events_count
    between = (made > count * _QUARTER // STRETCHES) & (made <= count * (STRETCHES - 1) // STRETCHES)
    stacks = memory.allocations["stack"][between]
    return numpy.bincount(places.of_stack[stacks], minlength=len(places.places))


def growth_of(lows: list[int], times: int, seconds: float | None) -> Growth | None:
    """Whether what a line keeps rises to the end, and does not slow down: as the line profiler judges its runs.

    ``times``: how often it allocates meanwhile; ``seconds``: of the whole recording.

    The first quarter may be unsteady: caches fill, the optimizer makes its state.
    """
    steps = [after - before for before, after in pairwise(lows)]
    quarter, half = len(steps) // 4, len(steps) // 2
    late = steps[half:]
    if times < _FEWEST_TIMES or min(steps[quarter:]) < 0:
        return None
    rate = sum(late) / len(late)
    if rate <= 0 or not _is_steady(late) or rate < sum(steps) / len(steps) / 2:
        return None
    kept = lows[-1] - lows[quarter]
    part = (len(lows) - 1 - quarter) / len(lows)
    return Growth(kept, kept / times, kept / (seconds * part) if seconds else None)


def _is_steady(steps: list[int]) -> bool:
    """It rises in most stretches, in the last ones too: memory that is kept seldom still counts."""
    rising = [step > 0 for step in steps]
    return sum(rising) * 2 >= len(steps) and any(rising[-2:]) and max(steps) <= sum(steps) / 2
