"""`diff`: which lines of a changed program take more or less, as text."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby

from ..data.columns import is_bytes
from ..render.text import clean, clean_code, readable_size, right_column, show_value
from .differences import Comparison, Difference
from .loading import load_records
from .outputs import print_text
from .snapshot import are_snapshots, diff_snapshots
from .usage import UsageError, one_line

_SIDES = ("before", "after", "diff")


def diff(options: argparse.Namespace) -> int:
    """Run the command; its exit status is returned."""
    names = (options.before, options.after)
    if are_snapshots(names):
        print_text(diff_snapshots(*names))
        return 0
    reports = [load_records(name) for name in names]
    try:
        comparison = Comparison(reports, names, options.column, options.function)
    except ValueError as error:
        raise UsageError(one_line(error)) from None
    print_text(render_comparison(comparison))
    return 0


def render_comparison(comparison: Comparison) -> str:
    """A table of the lines, then the highest values and the notes; lines compared by other columns have their own."""
    groups = groupby(comparison.differences, key=lambda difference: difference.columns)
    parts = ["\n".join(_grid(columns, list(group))) + "\n" for columns, group in groups]
    below = [
        f"highest {column}: {_show(column, before)} before, {_show(column, after)} after "
        f"({_signed(column, after - before)})\n"
        for column, (before, after) in comparison.highest.items()
    ]
    below += [f"note: {clean(note)}\n" for note in comparison.notes]
    return "\n".join((parts or ["no line differs\n"]) + (["".join(below)] if below else []))


def _grid(columns: Sequence[str], differences: Sequence[Difference]) -> list[str]:
    height = max(column.count(".") for column in columns) + 2
    cells = []
    for position, column in enumerate(columns):
        values = [difference.values(position) for difference in differences]
        for side, show in enumerate((_show, _show, _signed)):
            cells.append(
                _column(f"{column}.{_SIDES[side]}", height, differences, [show(column, v[side]) for v in values])
            )
    cells.append(_column("line", height, differences, [_lines(difference) for difference in differences]))
    cells.append(
        _column("function", height, differences, [clean(difference.function.qualname) for difference in differences])
    )
    code = ["  code", *[""] * (height - 1)]
    for difference in differences:
        code += _code(difference)
    return [f"{' '.join(row)} {text}".rstrip() for *row, text in zip(*cells, code)]


def _column(title: str, height: int, differences: Sequence[Difference], values: Sequence[str]) -> list[str]:
    """A value for each line of text: a changed line has two, its figures are on the first."""
    spread: list[str] = []
    for difference, value in zip(differences, values):
        spread += [value, *[""] * (len(_code(difference)) - 1)]
    return right_column(title.split("."), height, spread)


def _code(difference: Difference) -> list[str]:
    """One or two lines of text, marked as `diff -u` does."""
    before, after = difference.lines.before, difference.lines.after
    if not difference.lines.changed and after is not None:
        return [f"  {clean_code(after.code)}"]
    sides = [("- ", before), ("+ ", after)]
    return [mark + clean_code(row.code) for mark, row in sides if row is not None]


def _lines(difference: Difference) -> str:
    numbers = [str(row.line) if row else "" for row in (difference.lines.before, difference.lines.after)]
    return numbers[0] if numbers[0] == numbers[1] else ">".join(numbers)


def _show(column: str, value: int | None) -> str:
    return show_value(column, value)


def _signed(column: str, value: int | None) -> str:
    if value is None:
        return ""
    return ("+" if value > 0 else "") + (readable_size(value) if is_bytes(column) else str(value))
