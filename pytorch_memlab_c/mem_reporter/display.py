"""The object that a notebook or a terminal shows for a memory report."""

from __future__ import annotations

from collections.abc import Sequence

from ..render.text import clean, clean_code, readable_size
from .html import render_memory
from .rows import Row, Section
from .text import KEEPERS, breakdown, folded_line, keeper_lines, shown_size, totals

NO_TENSORS = "no tensor is alive"
_LENGTH = 79
_NAME, _SIZE, _USED = 40, 20, 10
_HEADER = ("Element type", "Size", "Used MEM")


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
            lines += ["-" * length, *totals(section), *map(str, breakdown(section)), *_keepers(section), "-" * length]
        return "\n".join([*lines, *(f"note: {clean(note)}" for note in self.notes)]) + "\n"

    __repr__ = __str__

    def label(self, row: Row) -> str:
        """The name, with the owner of the bytes where that is asked for, and whether the memory is pinned."""
        owner = f"(->{row.owner})" if self._verbose and row.owner else ""
        return clean_code(row.name + owner + (" (pinned)" if row.pinned else ""))

    def _repr_html_(self) -> str:
        return render_memory(self.sections, self.notes, self.label)


def _keepers(section: Section) -> list[str]:
    lines = keeper_lines(section)
    return ["", KEEPERS, *(f"{size:>{_USED}s}  {text}" for size, text in lines)] if lines else []


def _line(width: int, name: str, size: str, used: str) -> str:
    return f"{name:<{width}s}{size:>{_SIZE}s}{used:>{_USED}s}"
