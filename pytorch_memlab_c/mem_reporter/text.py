"""A memory report as text and HTML: per device its tensors, totals, and the ladder up to what the device has in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..render.text import clean_code, readable_size

if TYPE_CHECKING:
    from .levels import Level
    from .rows import Row, Section

NO_TENSORS = "no tensor is alive"
_LENGTH = 79
_NAME, _SIZE, _USED = 40, 20, 10
_HEADER = ("Element type", "Size", "Used MEM")


class Step(NamedTuple):
    """A step of the ladder."""

    label: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.label}: {self.nbytes} bytes ({readable_size(self.nbytes)})"


class ReportDisplay:
    """A report that shows itself: HTML with bars in a notebook, text elsewhere. It holds no tensor."""

    def __init__(self, sections: Sequence[Section], notes: Sequence[str], verbose: bool) -> None:
        self.sections = sections
        self.notes = notes if sections else [*notes, NO_TENSORS]
        self._verbose = verbose

    def __str__(self) -> str:
        width = max([_NAME, *(len(self.label(row)) + 1 for section in self.sections for row in section.rows)])
        length = _LENGTH + width - _NAME
        lines = [_line(width, *_HEADER)]
        for section in self.sections:
            lines += ["-" * length, f"Storage on {section.device}"]
            lines += [_line(width, self.label(row), shown_size(row), readable_size(row.nbytes)) for row in section.rows]
            lines += [_line(width, text, "", size) for text, size in folded_line(section)]
            lines += ["-" * length, *totals(section), *map(str, ladder(section)), "-" * length]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]) + "\n"

    __repr__ = __str__

    def label(self, row: Row) -> str:
        """The name, with the owner of the bytes where that is asked for."""
        owner = f"(->{row.owner})" if self._verbose and row.owner else ""
        return clean_code(row.name + owner)

    def _repr_html_(self) -> str:
        from .html import render_memory

        return render_memory(self)


def _line(width: int, name: str, size: str, used: str) -> str:
    return f"{name:<{width}s}{size:>{_SIZE}s}{used:>{_USED}s}"


def shown_size(row: Row) -> str:
    """The shape as a tuple; that of a scalar as one element."""
    shape = row.shape or (1,)
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def folded_line(section: Section) -> list[tuple[str, str]]:
    """(text, size) of the line that stands for the rows left out, if there are any."""
    count, nbytes = section.folded
    return [(f"... and {count:,} more", readable_size(nbytes))] if count else []


def totals(section: Section) -> list[str]:
    lines = [f"Total Tensors: {section.elements} \tUsed Memory: {readable_size(section.used)}"]
    if section.level is not None and section.level.allocated is not None:
        lines.append(f"The allocated memory on {section.device}: {readable_size(section.level.allocated)}")
    return lines


def ladder(section: Section) -> list[Step]:
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


def _upper_steps(level: Level) -> list[Step]:
    steps = [
        ("not reachable from Python", level.unreachable),
        ("allocated", level.allocated),
        ("reserved", level.reserved),
        (f"used on {level.device} by all processes", level.used),
    ]
    return [Step(label, nbytes) for label, nbytes in steps if nbytes is not None]
