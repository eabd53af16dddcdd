"""A memory report as HTML for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..render.html import COLORS, Cell, byte_cell, template
from ..render.text import readable_size
from . import text

if TYPE_CHECKING:
    from .rows import Section
    from .text import ReportDisplay


def render_memory(report: ReportDisplay) -> str:
    """A memory report as one ``<div>``; a bar for each row's share of its device's largest."""
    sections = [_memory_section(report, section) for section in report.sections]
    return template("memory.html.j2").render(sections=sections, notes=report.notes)


def _memory_section(report: ReportDisplay, section: Section) -> dict[str, object]:
    largest = max((row.nbytes for row in section.rows), default=0)
    return {
        "device": section.device,
        "rows": [
            {"name": report.label(row), "size": text.shown_size(row), "cell": _size_cell(row.nbytes, largest)}
            for row in section.rows
        ],
        "folded": text.folded_line(section),
        "totals": text.totals(section),
        "ladder": [
            {"label": step.label, "text": readable_size(step.nbytes), "title": f"{step.nbytes:,} bytes"}
            for step in text.ladder(section)
        ],
    }


def _size_cell(nbytes: int, largest: int) -> Cell:
    return byte_cell("active_bytes.all.peak", nbytes, largest, COLORS[0])
