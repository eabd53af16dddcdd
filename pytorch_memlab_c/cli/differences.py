"""The lines of two reports that differ, in their source or in their figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..data.comparison import LinePair, match_functions, match_lines, table_of
from ..data.record_types import FunctionRecord
from ..data.selection import select
from ..data.tables import default_columns_for
from ..line_profiler.records import LineRecords
from ..render.holders import failure_text

Pair = tuple[FunctionRecord, FunctionRecord]


@dataclass(frozen=True)
class Difference:
    """A line of a function before and after, in the columns compared. The first one decides on the order."""

    function: FunctionRecord
    lines: LinePair
    columns: tuple[str, ...]

    def values(self, position: int) -> tuple[int | None, int | None, int | None]:
        """A column's value before, after, and the difference, where both are there."""
        sides = (self.lines.before, self.lines.after)
        before, after = (row.values[position] if row is not None else None for row in sides)
        return before, after, None if before is None or after is None else after - before

    @property
    def size(self) -> int:
        """How far the first column is apart; of a line that only one side has, the last column (net) itself."""
        difference = self.values(0)[2]
        if difference is None:
            before, after, _ = self.values(len(self.columns) - 1)
            difference = before or after
        return abs(difference or 0)

    @property
    def ran(self) -> bool:
        """Whether the line has a value in any column."""
        return any(value is not None for i in range(len(self.columns)) for value in self.values(i))

    @property
    def matters(self) -> bool:
        """Whether figures differ, or code; a comment is none."""
        if self.lines.changed:
            rows = (row for row in (self.lines.before, self.lines.after) if row is not None)
            return any(row.code.strip() and not row.code.lstrip().startswith("#") for row in rows)
        return any(self.values(i)[2] for i in range(len(self.columns)))

    @property
    def place(self) -> tuple[str, int, int]:
        """File and line numbers, by which a line is known again."""
        before, after = self.lines.before, self.lines.after
        return self.function.filename, before.line if before else 0, after.line if after else 0


class Comparison:
    """Two reports: `differences`, lines of changed source first and then the largest; `notes` for the reader.

    Raises `ValueError` for an unknown function or column.
    """

    def __init__(
        self, reports: Sequence[LineRecords], names: Sequence[str], columns: Sequence[str], functions: Sequence[str]
    ) -> None:
        self._reports = reports
        self._columns = tuple(columns)
        self.notes: list[str] = []
        found: list[Difference] = []
        for before, after in chosen_functions(reports, functions):
            if before is not None and after is not None:
                found += self._compare((before, after))
            elif before is not None or after is not None:
                side, function = (names[0], before) if before is not None else (names[1], after)
                self.notes.append(f"{function.qualname if function else ''} is only in {side}")
        self._note_highest(found)
        self.notes += _notes_of(names, reports)
        ordered = sorted(_each_line_once(found), key=lambda d: (not d.lines.changed, -d.size))
        self.differences = [difference for difference in ordered if difference.matters]

    def _compare(self, pair: Pair) -> list[Difference]:
        columns = self._columns or self._default_columns(pair)
        if not columns:
            return []
        before, after = (table_of(r, f, columns).rows for r, f in zip(self._reports, pair))
        return [Difference(pair[1], lines, columns) for lines in match_lines(before, after)]

    def _default_columns(self, pair: Pair) -> tuple[str, ...]:
        devices = [table_of(records, f, ()).devices for records, f in zip(self._reports, pair)]
        if set(devices[0]) != set(devices[1]):
            shown = [" and ".join(side) or "no device" for side in devices]
            self.notes.append(f"{pair[1].qualname}: {shown[0]} before, {shown[1]} after; these are not compared")
            return ()
        return (default_columns_for(devices[0])[0], "net.last")

    def _note_highest(self, differences: Iterable[Difference]) -> None:
        """The highest value of any line, for each column that was first."""
        highest: dict[str, list[int]] = {}
        for difference in differences:
            best = highest.setdefault(difference.columns[0], [0, 0])
            for side, value in enumerate(difference.values(0)[:2]):
                best[side] = max(best[side], value or 0)
        self.highest = highest


def _notes_of(names: Sequence[str], reports: Sequence[LineRecords]) -> list[str]:
    """What each report says of itself, with its name where the others do not say the same."""
    by_report = [[*_failures(records), *records.notes] for records in reports]
    shared = [note for note in by_report[0] if all(note in notes for notes in by_report)]
    own = [f"{name}: {note}" for name, notes in zip(names, by_report) for note in notes if note not in shared]
    return own + shared


def _failures(records: LineRecords) -> list[str]:
    """The first allocation that failed, and how often one did."""
    held = records.holders
    first = [failure_text(failure).partition("\n")[0] for failure in held.out_of_memory[:1]]
    times = f" ({held.failures} times)" if held.failures > 1 else ""
    return [f"{line[0].lower()}{line[1:]}{times}" for line in first]


def chosen_functions(reports: Sequence[LineRecords], names: Sequence[str]) -> list[list[FunctionRecord | None]]:
    """One row a function, with its record in each report: those named, or all.

    Raises `ValueError` for a name that no report has.
    """
    rows = match_functions(reports)
    chosen = {id(record) for name in names for record in _named(reports, name)}
    return [row for row in rows if not names or any(id(record) in chosen for record in row)]


def _named(reports: Sequence[LineRecords], name: str) -> list[FunctionRecord]:
    found: list[FunctionRecord] = []
    for report in reports:
        with contextlib.suppress(ValueError):
            found += [report.functions[i] for i in select(report.functions, name)]
    if not found:
        select(max((report.functions for report in reports), key=len), name)  # raises, with the known names
    return found


def _each_line_once(differences: Iterable[Difference]) -> list[Difference]:
    """A module's table has the lines of its functions too; a line is reported where it ran."""
    by_place: dict[tuple[str, int, int], Difference] = {}
    for difference in differences:
        known = by_place.get(difference.place)
        if known is None or (difference.ran and not known.ran):
            by_place[difference.place] = difference
    return list(by_place.values())
