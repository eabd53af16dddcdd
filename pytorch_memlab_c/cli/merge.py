"""`merge`: the reports of several ranks side by side."""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..data.comparison import table_of
from ..data.record_types import FunctionRecord
from ..data.tables import build_tables, default_columns_for
from ..line_profiler.records import LineRecords
from ..render.files import write_file
from ..render.holders import devices_of, render_holders
from ..render.text import clean, clean_code, right_column, show_value
from .differences import chosen_functions
from .loading import load_records
from .outputs import checked_paths, print_text, tell
from .snapshot import are_snapshots, files_in, merge_snapshots
from .usage import UsageError, one_line

Values = tuple[int | None, ...]


class MergedFunction(NamedTuple):
    """One function of all ranks.

    Each of `lines` has its number, its text, and its values, column by column and each rank by rank.
    """

    qualname: str
    columns: tuple[str, ...]
    lines: list[tuple[int, str, Values]]


def merge(options: argparse.Namespace) -> int:
    """Run the command; its exit status is returned."""
    paths = checked_paths(options.output, (".csv", ".txt"))
    files = files_in(options.files)
    ranks = rank_names(files)
    if are_snapshots(files):
        merge_snapshots(files, ranks, paths)
        return 0
    reports = [load_records(file) for file in files]
    try:
        merged = list(merge_records(reports, options.column, options.function))
    except ValueError as error:
        raise UsageError(one_line(error)) from None
    tables = [_text_of(function, ranks) for function in merged] or ["no function is in these reports\n"]
    held = [_held_text(rank, records) for rank, records in zip(ranks, reports)]
    text = "\n\n".join([*tables, *filter(None, held)])
    notes = [clean(f"{rank}: {note}") for rank, records in zip(ranks, reports) for note in records.notes]
    text += "".join(f"\nnote: {note}" for note in notes) + ("\n" if notes else "")
    for path in paths:
        write_file(path, _csv_of(merged, ranks) if path.endswith(".csv") else text)
        tell(f"wrote {path}")
    if not paths:
        print_text(text)
    return 0


def rank_names(files: Sequence[str]) -> list[str]:
    """What each file is called in the table: `rank0` where its name says so, otherwise the name."""
    stems = [Path(file).stem for file in files]
    found = [re.search(r"rank[-_.]?(\d+)", stem) for stem in stems]
    names = [f"rank{match[1]}" if match else stem for match, stem in zip(found, stems)]
    return names if len(set(names)) == len(names) else [str(file) for file in files]


def merge_records(
    reports: Sequence[LineRecords], columns: Sequence[str], functions: Sequence[str]
) -> Iterator[MergedFunction]:
    """The functions of all reports, or those named. Raises `ValueError` for an unknown function or column."""
    for row in chosen_functions(reports, functions):
        yield _merged(reports, row, tuple(columns))


def _merged(
    reports: Sequence[LineRecords], row: Sequence[FunctionRecord | None], columns: tuple[str, ...]
) -> MergedFunction:
    columns = columns or _peak_columns(reports, row)
    lines: dict[tuple[int, str], dict[int, Values]] = {}
    for rank, (records, function) in enumerate(zip(reports, row)):
        for line in table_of(records, function, columns).rows if function is not None else ():
            lines.setdefault((line.line, line.code), {})[rank] = line.values
    nothing: Values = (None,) * len(columns)
    ranks = range(len(reports))
    rows = [
        (number, code, tuple(by_rank.get(rank, nothing)[i] for i in range(len(columns)) for rank in ranks))
        for (number, code), by_rank in sorted(lines.items())
    ]
    return MergedFunction(next(filter(None, row)).qualname, columns, rows)


def _peak_columns(reports: Sequence[LineRecords], row: Sequence[FunctionRecord | None]) -> tuple[str, ...]:
    """The peak of each kind of device that the ranks have: CPU and CUDA memory do not share a column."""
    tables = [table_of(records, function, ()) for records, function in zip(reports, row) if function is not None]
    return tuple(dict.fromkeys(default_columns_for(table.devices)[0] for table in tables))


def _titles(function: MergedFunction, ranks: Sequence[str]) -> list[tuple[str, str]]:
    return [(column, rank) for column in function.columns for rank in ranks]


def _text_of(function: MergedFunction, ranks: Sequence[str]) -> str:
    height = max(column.count(".") for column in function.columns) + 2
    cells = []
    for position, (column, rank) in enumerate(_titles(function, ranks)):
        shown = [show_value(column, values[position]) for _, _, values in function.lines]
        cells.append(right_column([*column.split("."), rank], height, shown))
    cells.append(right_column(["line"], height, [str(number) for number, _, _ in function.lines]))
    code = ["code", *[""] * (height - 1), *(clean_code(text) for _, text, _ in function.lines)]
    rows = [f"{' '.join(row)}  {text}".rstrip() for *row, text in zip(*cells, code)]
    return "\n".join([f"## {clean(function.qualname)}", "", *rows]) + "\n"


def _held_text(rank: str, records: LineRecords) -> str:
    """Who holds a rank's peak, and its allocations that failed; empty where nothing is known of that."""
    held = render_holders(records.holders, devices_of(build_tables(records, columns=())))
    return f"## {rank}\n\n{held}" if held else ""


def _csv_of(merged: Sequence[MergedFunction], ranks: Sequence[str]) -> str:
    """One row a line, rank and column."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("function", "line", "column", "rank", "value", "code"))
    for function in merged:
        for number, code, values in function.lines:
            for (column, rank), value in zip(_titles(function, ranks), values):
                writer.writerow((function.qualname, number, column, rank, value, code))
    return stream.getvalue()
