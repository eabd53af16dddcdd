"""A memory report as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..render.html import COLORS, Cell, byte_cell, template
from ..render.text import readable_size
from . import text
from .rows import Row, Section

Label = Callable[[Row], str]


def render_memory(sections: Sequence[Section], notes: Sequence[str], label: Label) -> str:
    """A memory report as one ``<div>``; a bar for each row's share of its device's largest."""
    return template("memory.html.j2").render(sections=[_memory_section(s, label) for s in sections], notes=notes)


def _memory_section(section: Section, label: Label) -> dict[str, object]:
    largest = max((row.nbytes for row in section.rows), default=0)
    return {
        "device": section.device,
        "rows": [
            {"name": label(row), "size": text.shown_size(row), "cell": _size_cell(row.nbytes, largest)}
            for row in section.rows
        ],
        "folded": text.folded_line(section),
        "totals": text.totals(section),
        "breakdown": [
            {"label": step.label, "text": readable_size(step.nbytes), "title": f"{step.nbytes:,} bytes"}
            for step in text.breakdown(section)
        ],
        "keepers_title": text.KEEPERS,
        "keepers": text.keeper_lines(section),
    }


def _size_cell(nbytes: int, largest: int) -> Cell:
    return byte_cell("active_bytes.all.peak", nbytes, largest, COLORS[0])
