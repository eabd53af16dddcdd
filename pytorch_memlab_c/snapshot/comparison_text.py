"""Snapshots beside each other as text and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ..render.text import clean, readable_size, right_column
from .comparison import Row, levels_of, rows_of
from .report_types import SnapshotReport
from .source_text import SourceText
from .text import LINES, name_of


def render_difference(before: SnapshotReport, after: SnapshotReport) -> str:
    """What holds more or less at the peak in the second one; the largest difference first."""
    reports = (before, after)
    rows = [row for row in rows_of(reports) if _difference(row) or row.peak[0] != row.peak[1]]
    rows.sort(key=lambda row: (-abs(_difference(row)), -abs(row.peak[1] - row.peak[0])))
    parts = [f"{before.file} and {after.file}\n", _levels_text(reports, ("before", "after"), with_difference=True)]
    parts.append(_difference_text(rows, SourceText(after.taken)) if rows else "no line differs\n")
    return "\n".join(parts) + _notes(reports, ("before", "after"))


def _difference(row: Row) -> int:
    return row.at_peak[1] - row.at_peak[0]


def _difference_text(rows: Sequence[Row], source: SourceText) -> str:
    shown = rows[:LINES]
    columns = [
        right_column([title], 1, [text(row) for row in shown])
        for title, text in (
            ("before", lambda row: readable_size(row.at_peak[0])),
            ("after", lambda row: readable_size(row.at_peak[1])),
            ("difference", lambda row: _signed(_difference(row))),
        )
    ]
    more = f"{len(rows) - len(shown)} more lines differ" if len(rows) > len(shown) else ""
    return _table("Held when the peak is reached, by line", columns, shown, source, more)


def render_ranks(reports: Sequence[SnapshotReport], names: Sequence[str]) -> str:
    """All snapshots side by side: their figures, then the most that each line held."""
    rows = rows_of(reports)
    shown = rows[:LINES]
    columns = [right_column([name], 1, [readable_size(row.peak[i]) for row in shown]) for i, name in enumerate(names)]
    more = f"{len(rows) - len(shown)} more lines" if len(rows) > len(shown) else ""
    parts = [_levels_text(reports, names, with_difference=False)]
    parts.append(_table("The most that each line held", columns, shown, SourceText(reports[0].taken), more))
    return "\n".join(parts) + _notes(reports, names)


def ranks_csv(reports: Sequence[SnapshotReport], names: Sequence[str]) -> str:
    """One row a line and snapshot."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("rank", "device", "kind", "file", "line", "function", "peak", "at_peak", "live"))
    for row in rows_of(reports):
        for i, name in enumerate(names):
            place = row.place
            line = (place.kind, place.filename, place.line or "", place.function)
            writer.writerow((name, row.device, *line, row.peak[i], row.at_peak[i], row.live[i]))
    return stream.getvalue()


def _levels_text(reports: Sequence[SnapshotReport], names: Sequence[str], with_difference: bool) -> str:
    levels = levels_of(reports)
    columns = [right_column([name], 1, [_size(level.values[i]) for level in levels]) for i, name in enumerate(names)]
    if with_difference:
        columns.append(right_column(["difference"], 1, [_change(level.values) for level in levels]))
    labels = ["", *(f"{level.device} {level.name}" for level in levels)]
    width = max(map(len, labels))
    return "\n".join(f"{label:{width}} {' '.join(cells)}".rstrip() for label, *cells in zip(labels, *columns)) + "\n"


def _table(title: str, columns: list[list[str]], rows: Sequence[Row], source: SourceText, more: str) -> str:
    several = len({row.device for row in rows}) > 1
    names = ["line", *(f"{row.device + ': ' if several else ''}{name_of(row.place)}" for row in rows)]
    code = ["code", *(source.shown(row.place) for row in rows)]
    width = max(map(len, names))
    lines = [
        f"  {' '.join(cells)}  {name:{width}}  {text}".rstrip() for *cells, name, text in zip(*columns, names, code)
    ]
    return "\n".join([title, *lines, *([f"  {more}"] if more else [])]) + "\n"


def _size(value: int | None) -> str:
    return "-" if value is None else readable_size(value)


def _signed(value: int) -> str:
    return f"+{readable_size(value)}" if value > 0 else readable_size(value)


def _change(values: tuple[int | None, ...]) -> str:
    return "" if values[0] is None or values[1] is None else _signed(values[1] - values[0])


def _notes(reports: Sequence[SnapshotReport], names: Sequence[str]) -> str:
    notes = [
        f"note: {clean(name)}: {clean(note)}"
        for name, report in zip(names, reports)
        for note in (*report.notes, *(note for device in report.devices for note in device.notes))
    ]
    return "\n" + "\n".join(notes) + "\n" if notes else ""
