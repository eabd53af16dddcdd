"""The whole report as text: what was run, who holds the peak, what keeps growing, what autograd kept, then tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..data.holder_types import ELSEWHERE, HolderRecords
from ..data.records import Records
from ..data.tables import Table, allocated_in, build_tables
from .holders import devices_of, holders_blocks
from .lines import FAINT, Block, Line, joined, plain
from .run_text import run_block
from .sections import sections_blocks
from .summaries import order_by_peak, summaries
from .table_text import Look, Place, table_block
from .text import NO_FUNCTIONS, clean, first_few

#: Tables of a short report, if not all of its functions were named.
MOST_TABLES = 10
_MOST_NAMED = 5


def report_text(records: Records, tables: Sequence[Table], func: Any = None, device: Any = None) -> str:
    """Everything, functions in the order of `tables`."""
    return plain(_report(records, tables, Look(places_of_peaks(records.holders)), [], func, device))


def tables_text(records: Records, tables: Sequence[Table], marked: Iterable[Place] = ()) -> str:
    """Tables and notes, without a summary."""
    return plain(joined([_tables(tables, Look(set(marked))), _notes(records.notes)], 2))


def full_report(records: Records, columns: Any = None, device: Any = None) -> Block:
    """`report_text` as lines."""
    tables = build_tables(records, None, columns, device)
    return _report(records, tables, Look(places_of_peaks(records.holders)), [], None, device)


def short_report(records: Records, columns: Any = None, device: Any = None, named: bool = False) -> Block:
    """The highest peak first, with lines that never ran folded.

    Unless the functions were `named`, those that allocated nothing are left out, and all but the highest ones.
    """
    tables = build_tables(records, None, columns, device)
    ordered = [tables[i] for i in order_by_peak(summaries(records, None, device), len(tables))]
    loud = ordered if named else [table for table in ordered if not table.ran or allocated_in(table)] or ordered
    shown = loud if named else loud[:MOST_TABLES]
    look = Look(places_of_peaks(records.holders), True, [table.function for table in tables])
    return _report(records, shown, look, _left_out(ordered, shown), None, device)


def places_of_peaks(holders: HolderRecords) -> set[Place]:
    """The lines that ran at the highest moments."""
    return {(peak.device, peak.at.filename, peak.at.line) for peak in holders.peaks if peak.at.kind != ELSEWHERE}


def _report(
    records: Records, tables: Sequence[Table], look: Look, below: Block, func: Any = None, device: Any = None
) -> Block:
    devices = devices_of(tables)
    answers = [*holders_blocks(records.holders, devices), *sections_blocks(records, func=func, device=device)]
    summary = joined([run_block(records), *answers])
    return joined([summary, _tables(tables, look), below, _notes(records.notes)], 2)


def _tables(tables: Sequence[Table], look: Look) -> Block:
    return joined([table_block(table, look) for table in tables], 2) or [Line(NO_FUNCTIONS)]


def _left_out(tables: Sequence[Table], shown: Sequence[Table]) -> Block:
    names = [clean(table.heading) for table in tables if table not in shown]
    if not names:
        return []
    count = f"{len(names)} function{'s' * (len(names) > 1)}"
    return [Line(f"{count} not shown, -v shows all: {first_few(names, _MOST_NAMED)}", FAINT)]


def _notes(notes: Iterable[str]) -> Block:
    return [Line(f"note: {clean(note)}", FAINT) for note in dict.fromkeys(notes)]
