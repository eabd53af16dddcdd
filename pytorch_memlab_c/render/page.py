"""The report as one HTML page: works offline, light and dark, functions in the order of their peaks.

All text is escaped. Should anything slip through, the page's own security policy lets no other script
run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..data.columns import is_bytes
from ..data.device_names import CPU
from ..data.records import Records
from ..data.tables import Row, Table, build_tables, never_called
from .holders import devices_of
from .holders_html import holders_fragment
from .html import COLORS, maxima, share, template, template_text
from .sections import sections_html
from .summaries import SCOPES, Summary, order_by_peak, summaries
from .text import NO_FUNCTIONS, clean_code, show_value, shows_device_column, titled_notes

_NET_COLOR = 2


class Cell(NamedTuple):
    """One value: its text, the number to sort by, the exact bytes, and its bar in percent."""

    text: str
    value: int | None
    title: str
    percent: float
    color: int
    freed: bool


def render_page(
    records: Records, func: Any = None, columns: Any = None, device: Any = None, title: str = "Memory by line"
) -> str:
    """The page's text. Arguments and errors as for ``LineRecords.to_dataframe``."""
    tables = build_tables(records, func, columns, device)
    lists = summaries(records, func, device)
    ordered = order_by_peak(lists, len(tables))
    script = template_text("page.js")
    notes = list(dict.fromkeys(records.notes))
    return template("page.html.j2").render(
        title=title,
        colors=COLORS,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        lists=_lists(tables, lists),
        functions=_functions(tables, lists, ordered),
        never=[(tables[i].label, _place(tables[i])) for i in ordered if not tables[i].ran],
        never_why=never_called(records),
        notes=notes if tables else [NO_FUNCTIONS, *notes],
        holders=holders_fragment(records.holders, devices_of(tables), _anchors(tables)),
        sections=sections_html(records, func, device, page=True),
    )


def _place(table: Table) -> str:
    return f"{os.path.basename(table.function.filename)}:{table.function.first_line}"


def _anchors(tables: Sequence[Table]) -> dict[tuple[Any, ...], str]:
    """Of each line that has a row, by function, file and line; of several devices, the first one's."""
    anchors: dict[tuple[Any, ...], str] = {}
    for position, table in enumerate(tables):
        for row in table.rows if table.ran else ():
            key = (table.function.qualname, table.function.filename, row.line)
            anchors.setdefault(key, f"f{position}-{row.line}")
    return anchors


def _lists(tables: Sequence[Table], lists: Sequence[Sequence[Summary]]) -> list[dict[str, object]]:
    """The lists of functions, one a scope that has any."""
    return [
        {
            "title": title,
            "devices": len({entry.devices for entry in entries}) > 1 or any(len(e.devices) > 1 for e in entries),
            "device": ", ".join(entries[0].devices),
            "rows": _list_rows(tables, entries),
        }
        for (title, _), entries in zip(SCOPES, lists)
        if entries
    ]


def _list_rows(tables: Sequence[Table], entries: Sequence[Summary]) -> list[dict[str, object]]:
    peak = max(entry.peak for entry in entries)
    net = max(abs(entry.net) for entry in entries)
    return [
        {
            "anchor": f"f{entry.table}",
            "name": clean_code(tables[entry.table].label),
            "place": clean_code(_place(tables[entry.table])),
            "devices": ", ".join(entry.devices),
            "cells": [
                _cell("tensor_bytes.peak", entry.peak, peak),
                _cell("net.last", entry.net, net),
                _cell("hits", tables[entry.table].function.calls, 0),
            ],
            "line": entry.line,
            "code": clean_code(entry.code),
        }
        for entry in entries
    ]


def _functions(
    tables: Sequence[Table], lists: Iterable[Sequence[Summary]], ordered: Iterable[int]
) -> list[dict[str, object]]:
    """The sections of the functions that ran."""
    highest = {(entry.table, entry.line) for entries in lists for entry in entries if entry.peak}
    largest = maxima(tables)
    return [_function(i, tables[i], highest, largest) for i in ordered if tables[i].ran]


def _function(
    position: int, table: Table, highest: set[tuple[int, int]], largest: dict[tuple[str, bool], int]
) -> dict[str, object]:
    return {
        "anchor": f"f{position}",
        "name": clean_code(table.heading),
        "filename": clean_code(table.function.filename),
        "first_line": table.function.first_line,
        "calls": table.function.calls,
        "device": _device(table),
        "columns": list(zip(table.columns, table.headings)),
        "has_device": shows_device_column(table),
        "rows": [_row(table, row, (position, row.line) in highest, largest) for row in table.rows],
        "notes": titled_notes(table),
    }


def _device(table: Table) -> str:
    scope = " (tensor bytes)" if table.devices == (CPU,) else ""
    return ", ".join(table.devices) + scope


def _row(table: Table, row: Row, highest: bool, largest: dict[tuple[str, bool], int]) -> dict[str, object]:
    cpu = table.devices == (CPU,)
    hits = row.values[table.columns.index("hits")] if "hits" in table.columns else None
    return {
        "line": row.line,
        "device": row.device or "",
        "code": clean_code(row.code),
        "highest": highest,
        "idle": hits == 0 and all(value is None for value in row.values if value != 0),
        "cells": [
            _cell(column, value, largest.get((column, cpu), 0), position)
            for position, (column, value) in enumerate(zip(table.columns, row.values))
        ],
    }


def _cell(column: str, value: int | None, largest: int, position: int = 0) -> Cell:
    title = f"{value:,} bytes" if value is not None and is_bytes(column) else ""
    color = _color(column, position)
    return Cell(show_value(column, value), value, title, share(value, largest), color, (value or 0) < 0)


def _color(column: str, position: int) -> int:
    """A column's place in ``COLORS``: net has the same everywhere, also where other columns are shown before it."""
    if column in ("net", "net.last"):
        return _NET_COLOR
    return position if position < _NET_COLOR else _NET_COLOR + 1 + position % (len(COLORS) - _NET_COLOR - 1)
