"""Tables as HTML: a fragment for notebooks and one page that works offline. All text is escaped."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..columns import is_bytes
from ..tables import Row, Table
from .text import (
    NO_FUNCTIONS,
    clean_code,
    device_line,
    show_value,
    shows_device_column,
    titled_notes,
)

if TYPE_CHECKING:
    import jinja2

#: Bars by column, as red, green, blue: Okabe and Ito's palette for colour-blind readers.
COLORS = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (213, 94, 0),
    (204, 121, 167),
    (86, 180, 233),
    (240, 228, 66),
    (128, 128, 128),
)


class Cell(NamedTuple):
    """One value: its text, the exact number for the tooltip, and its bar (percent, CSS colour)."""

    text: str
    title: str
    percent: float
    color: str


def render_fragment(tables: Sequence[Table], notes: Iterable[str] = (), *, holders: str = "") -> str:
    """The report as one ``<div>``, for a notebook's output cell; ``holders`` is HTML (holders_html.py)."""
    return _template("fragment.html.j2").render(holders=holders, **_context(tables, notes))


def render_page(
    tables: Sequence[Table], notes: Iterable[str] = (), title: str = "Memory by line", *, holders: str = ""
) -> str:
    """The report as one HTML page without outside references; ``holders`` is HTML (holders_html.py)."""
    return _template("page.html.j2").render(title=title, holders=holders, **_context(tables, notes))


@functools.cache
def _template(name: str) -> jinja2.Template:
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(name)


def _context(tables: Sequence[Table], notes: Iterable[str]) -> dict[str, object]:
    maxima = _maxima(tables)
    return {
        "sections": [_section(table, maxima) for table in tables],
        "notes": list(dict.fromkeys(notes)) if tables else [NO_FUNCTIONS, *notes],
    }


def _maxima(tables: Sequence[Table]) -> dict[str, int]:
    """The largest value by byte column, over all tables, so that bars compare across functions."""
    maxima: dict[str, int] = {}
    for table in tables:
        for i, column in enumerate(table.columns):
            if is_bytes(column):
                values = [abs(row.values[i] or 0) for row in table.rows]
                maxima[column] = max([maxima.get(column, 0), *values])
    return maxima


def _section(table: Table, maxima: dict[str, int]) -> dict[str, object]:
    columns = [column.split(".") for column in table.columns]
    return {
        "heading": table.heading,
        "device": device_line(table) if table.ran else None,
        "columns": columns,
        "has_device": shows_device_column(table),
        "rows": [_html_row(table, row, maxima) for row in table.rows] if table.ran else [],
        "notes": titled_notes(table),
    }


def _html_row(table: Table, row: Row, maxima: dict[str, int]) -> dict[str, object]:
    return {
        "line": row.line,
        "device": row.device or "",
        "code": clean_code(row.code),
        "cells": [
            _cell(column, row.values[i], maxima.get(column, 0), COLORS[i % len(COLORS)])
            for i, column in enumerate(table.columns)
        ],
    }


def _cell(column: str, value: int | None, maximum: int, color: tuple[int, int, int]) -> Cell:
    """A bar for bytes, half transparent so that it suits dark pages; fainter for freed bytes."""
    exact = f"{value:,} bytes" if value is not None and is_bytes(column) else ""
    percent = round(100 * abs(value or 0) / maximum, 1) if maximum else 0.0
    strength = 0.45 if (value or 0) >= 0 else 0.2
    return Cell(show_value(column, value), exact, percent, f"rgba{(*color, strength)}")
