"""The whole report as text: tables, who holds the peak, notes, then what keeps growing and what autograd kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data.records import Records
from ..data.tables import Table
from .holders import devices_of, render_holders
from .sections import sections_text
from .text import render_text


def tables_text(records: Records, tables: Sequence[Table]) -> str:
    """The tables of `records` with the holders of the devices in them, and the notes."""
    return render_text(tables, records.notes, render_holders(records.holders, devices_of(tables)))


def report_text(records: Records, tables: Sequence[Table], func: Any = None, device: Any = None) -> str:
    """`tables_text`, and the sections about the same functions and device below it."""
    return tables_text(records, tables) + sections_text(records, func=func, device=device)
