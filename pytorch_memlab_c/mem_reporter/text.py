"""The lines of a memory report, by device.

They are its totals, and the steps from the tensors seen to what the device has in use.
"""

from __future__ import annotations

from typing import NamedTuple

from ..chains.search import LIMIT
from ..render.text import readable_size
from .levels import Level
from .rows import Row, Section

#: The title of what keeps the largest storages alive.
KEEPERS = "Who keeps it"


class Step(NamedTuple):
    """A step of the memory breakdown."""

    label: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.label}: {self.nbytes} bytes ({readable_size(self.nbytes)})"


def shown_size(row: Row) -> str:
    """The shape as a tuple; that of a scalar as one element."""
    shape = row.shape or (1,)
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def folded_line(section: Section) -> list[tuple[str, str]]:
    """(text, size) of the line that sums up the rows left out, if there are any."""
    count, nbytes = section.folded
    return [(f"... and {count:,} more", readable_size(nbytes))] if count else []


def totals(section: Section) -> list[str]:
    """Elements and bytes in all, and what the allocator has given out."""
    lines = [f"Total Tensors: {section.elements} \tUsed Memory: {readable_size(section.used)}"]
    if section.level is not None and section.level.allocated is not None:
        lines.append(f"The allocated memory on {section.device}: {readable_size(section.level.allocated)}")
    return lines


def breakdown(section: Section) -> list[Step]:
    """From the tensors seen to what the device has in use; steps that say nothing are left out."""
    level = section.level
    if level is None or not (level.seen or level.allocated or level.reserved):
        return []
    steps = [
        Step("tensors seen", level.seen),
        Step("of them held by autograd alone", level.saved),
        Step("of them not from PyTorch's allocator", level.elsewhere),
        Step("allocator rounding", level.rounding),
    ]
    always = (0, 3) if level.reserved is not None else (0,)
    kept = [step for i, step in enumerate(steps) if step.nbytes or i in always]
    return kept + _upper_steps(level)


def keeper_lines(section: Section) -> list[tuple[str, str]]:
    """(size, text) of what keeps the largest storages alive, if that was asked for."""
    if section.keepers is None:
        return []
    lines = [(readable_size(row.nbytes), row.text) for row in section.keepers.rows]
    number, nbytes = section.keepers.folded
    lines += [(readable_size(nbytes), f"... {number:,} more tensors")] * bool(number)
    return lines + [("", f"the search ended after {LIMIT:,} objects")] * (not section.keepers.whole)


def _upper_steps(level: Level) -> list[Step]:
    steps = [
        ("not reachable from Python", level.unreachable),
        ("allocated", level.allocated),
        ("reserved", level.reserved),
        (f"used on {level.device} by all processes", level.used),
    ]
    return [Step(label, nbytes) for label, nbytes in steps if nbytes is not None]
