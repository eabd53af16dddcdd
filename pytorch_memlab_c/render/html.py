"""Tables as HTML for notebooks, and what all HTML shares (the whole page: page.py). All text is escaped."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..data.columns import is_bytes
from ..data.device_names import CPU
from ..data.tables import Row, Table
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
    from markupsafe import Markup

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
_TEMPLATES = Path(__file__).parent / "templates"


class Cell(NamedTuple):
    """One value: its text, the exact number for the tooltip, and its bar (percent, CSS colour)."""

    text: str
    title: str
    percent: float
    color: str


def render_fragment(tables: Sequence[Table], notes: Iterable[str] = (), *, below: Sequence[Markup] = ()) -> str:
    """The report as one ``<div>``, for a notebook's output cell; ``below``: elements to put below the tables."""
    return template("fragment.html.j2").render(below=below, **_context(tables, notes))


@functools.cache
def template(name: str) -> jinja2.Template:
    """A template of this package, with escaping on."""
    import jinja2

    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(name)


def template_text(name: str) -> str:
    """A file that templates include, as Jinja2 renders it: without its last line end."""
    return (_TEMPLATES / name).read_text("utf-8").removesuffix("\n")


def _context(tables: Sequence[Table], notes: Iterable[str]) -> dict[str, object]:
    largest = maxima(tables)
    return {
        "sections": [_section(table, largest) for table in tables],
        "notes": list(dict.fromkeys(notes)) if tables else [NO_FUNCTIONS, *notes],
    }


def maxima(tables: Sequence[Table]) -> dict[tuple[str, bool], int]:
    """The largest value by byte column, over all tables, so that bars compare across functions.

    The second key is whether it is about the CPU: its bytes and a GPU's are not compared.
    """
    largest: dict[tuple[str, bool], int] = {}
    for table in tables:
        for i, column in enumerate(table.columns):
            if is_bytes(column):
                key = column, table.devices == (CPU,)
                values = [abs(row.values[i] or 0) for row in table.rows]
                largest[key] = max([largest.get(key, 0), *values])
    return largest


def share(value: int | None, largest: int) -> float:
    """The length of a value's bar, in percent of the largest one's."""
    return round(100 * abs(value or 0) / largest, 1) if largest else 0.0


def _section(table: Table, largest: dict[tuple[str, bool], int]) -> dict[str, object]:
    columns = [heading.split(".") for heading in table.headings]
    return {
        "heading": table.heading,
        "device": device_line(table) if table.ran else None,
        "columns": columns,
        "has_device": shows_device_column(table),
        "rows": [_html_row(table, row, largest) for row in table.rows] if table.ran else [],
        "notes": titled_notes(table),
    }


def _html_row(table: Table, row: Row, largest: dict[tuple[str, bool], int]) -> dict[str, object]:
    cpu = table.devices == (CPU,)
    return {
        "line": row.line,
        "device": row.device or "",
        "code": clean_code(row.code),
        "cells": [
            byte_cell(column, row.values[i], largest.get((column, cpu), 0), COLORS[i % len(COLORS)])
            for i, column in enumerate(table.columns)
        ],
    }


def byte_cell(column: str, value: int | None, largest: int, color: tuple[int, int, int]) -> Cell:
    """A bar for bytes, half transparent so that it suits dark pages; fainter for freed bytes."""
    exact = f"{value:,} bytes" if value is not None and is_bytes(column) else ""
    strength = 0.45 if (value or 0) >= 0 else 0.2
    return Cell(show_value(column, value), exact, share(value, largest), f"rgba{(*color, strength)}")
