"""Which lines hold more after every run, told apart from set-up, caches and what is given back. See docs/leaks.md.

The engine samples what a line holds, the bytes that it allocated and that still live, as each of its runs begins. A
line *grows* if that rises over its runs, to the end, and is still held then. Where the line also holds what comes and
goes, such as a batch that the next run replaces, what it made before its last run decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from .rising import FEWEST, Stretch, falls, rate_of

#: PyTorch's allocators of GPUs do not split off less than this from a block that is larger than this.
_ROUNDING = 1 << 20


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
    rate = None if history.parts else rate_of(history.runs, history.end, rounding)
    if rate is None and (
        history.parts or falls([stretch.held for stretch in history.runs])
    ):  # calls may tell what stays
        rate = rate_of(history.calls, history.end, rounding)
    if rate is None:
        return None
    return Growth(max(1, round(rate)), 1 + sum(stretch.runs for stretch in history.runs), history.live)


def _ran_once_on_each_module(history: History) -> bool:
    """One forward pass through 32 layers, or the making of 32 layers, is one run."""
    return sum(stretch.samples for stretch in history.calls) < FEWEST * history.modules
