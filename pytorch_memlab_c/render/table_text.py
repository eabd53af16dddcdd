"""A table as text: title, header rows, one row a source line, then why a table is empty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ..data.record_types import FunctionRecord
from ..data.tables import Row, Table
from .lines import FAINT, MARKED, TITLE, Block, Line
from .text import clean, clean_code, device_line, first_few, right_column, show_value, shows_device_column, titled_notes

#: So many lines that never ran are folded into one.
_FOLDED = 3
_MOST_NAMED = 2
#: Device, file and line.
Place = tuple[str, str | None, int | None]


class Look(NamedTuple):
    """How tables are shown.

    `marked`: lines with a mark, where they ran. `folds`: whether lines that never ran are folded, and those of
    `functions`, which have tables of their own.
    """

    marked: Collection[Place] = ()
    folds: bool = False
    functions: Sequence[FunctionRecord] = ()


def table_block(table: Table, look: Look) -> Block:
    """All lines of a table."""
    title = [Line(f"## {clean(table.heading)}", TITLE)]
    shown_device = device_line(table) if table.ran else None
    if shown_device:
        title.append(Line(shown_device))
    notes = [Line(note) for note in titled_notes(table)]
    blocks = [title, _grid(table, look) if table.ran else [], notes]
    return [line for block in blocks if block for line in (*block, Line(""))][:-1]


def _grid(table: Table, look: Look) -> Block:
    """Header rows and value rows, columns right-aligned, code left-aligned and last."""
    height = max((heading.count(".") + 1 for heading in table.headings), default=1)
    columns = [
        right_column(heading.split("."), height, [show_value(column, row.values[i]) for row in table.rows])
        for i, (column, heading) in enumerate(zip(table.columns, table.headings))
    ]
    if shows_device_column(table):
        columns.append(right_column(["device"], height, [row.device or "" for row in table.rows]))
    columns.append(right_column(["line"], height, [str(row.line) for row in table.rows]))
    header, cells = zip(*columns), [" ".join(row) for row in list(zip(*columns))[height:]]
    heads = [" ".join(row) for row in list(header)[:height]]
    lines = [Line(f"{heads[0]}  code", row=True), *(Line(head.rstrip(), row=True) for head in heads[1:])]
    return lines + list(_rows(table, cells, look))


def _rows(table: Table, cells: Sequence[str], look: Look) -> Iterator[Line]:
    shown = list(zip(table.rows, cells))
    for never, group in groupby(shown, lambda pair: look.folds and _never_ran(table, pair[0])):
        rows = list(group)
        folded = _folded(table, [row for row, _ in rows], look) if never else ""
        if folded:
            yield Line(f"{'':{len(cells[0])}}  {folded}", FAINT, row=True)
        else:
            yield from (_row(table, row, text, look) for row, text in rows)


def _row(table: Table, row: Row, cells: str, look: Look) -> Line:
    places = [(device, table.function.filename, row.line) for device in table.devices]
    marked = not _never_ran(table, row) and any(place in look.marked for place in places)
    return Line(f"{cells}{'> ' if marked else '  '}{clean_code(row.code)}".rstrip(), MARKED if marked else "", True)


def _never_ran(table: Table, row: Row) -> bool:
    return not any(value for value in row.values) and all(
        value is None for column, value in zip(table.columns, row.values) if column != "hits"
    )


def _folded(table: Table, rows: Sequence[Row], look: Look) -> str:
    """What stands for these lines; empty where they are to be shown."""
    owners = [_owner(table.function, row.line, look.functions) for row in rows]
    names = list(dict.fromkeys(owner.qualname for owner in owners if owner is not None))
    silent = sum(1 for row, owner in zip(rows, owners) if owner is None and row.code.strip())
    if not names:
        return f"... {silent} lines not run" if silent >= _FOLDED else ""
    lines = sum(owner is not None for owner in owners)
    own = f"... {lines} line{'s' * (lines > 1)} of {clean(first_few(names, _MOST_NAMED))}"
    return f"{own}, {silent} not run" if silent else own


def _owner(function: FunctionRecord, line: int, others: Sequence[FunctionRecord]) -> FunctionRecord | None:
    """The innermost other function that the line is of, and that is written within this one."""
    inside = [
        other
        for other in others
        if other is not function
        and other.filename == function.filename
        and other.def_line > function.def_line
        and other.first_line <= line < other.first_line + len(other.source or ())
    ]
    return max(inside, key=lambda other: other.first_line, default=None)
