"""Reports side by side: which function of one is which of another, and which line."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from .record_types import FunctionRecord
from .records import Records
from .tables import Row, Table, build_tables

#: How a function is known again, the surest way first.
_KEYS: tuple[Callable[[FunctionRecord], Hashable], ...] = (
    lambda f: (f.qualname, f.filename),
    lambda f: (f.qualname, f.module, os.path.basename(f.filename)),
    lambda f: (f.qualname, f.module),
    lambda f: f.qualname,
)

#: Two lines are versions of one from this ratio of difflib on.
_SIMILAR = 0.5
_MOST_COMPARED = 2500


@dataclass(frozen=True)
class LinePair:
    """A line before and after; None on the side that does not have it."""

    before: Row | None
    after: Row | None

    @property
    def changed(self) -> bool:
        """Whether its source text is another one."""
        return self.before is None or self.after is None or self.before.code.strip() != self.after.code.strip()


def match_functions(reports: Sequence[Records]) -> list[list[FunctionRecord | None]]:
    """One row a function, with its record in each report: by qualname and file, or as much of these as fits.

    Several of one name are taken in their order.
    """
    rows: list[list[FunctionRecord | None]] = []
    for position, records in enumerate(reports):
        left = list(records.functions)
        for key in _KEYS:
            left = _take_matches(rows, position, left, key)
        rows += [_row_with(function, position, len(reports)) for function in left]
    return rows


def _take_matches(
    rows: list[list[FunctionRecord | None]],
    position: int,
    functions: list[FunctionRecord],
    key: Callable[[FunctionRecord], Hashable],
) -> list[FunctionRecord]:
    """Those of the functions that fit no row are returned."""
    free: dict[Hashable, list[list[FunctionRecord | None]]] = defaultdict(list)
    for row in rows:
        if row[position] is None:
            free[key(next(filter(None, row)))].append(row)
    left = []
    for function in functions:
        fitting = free[key(function)]
        if fitting:
            fitting.pop(0)[position] = function
        else:
            left.append(function)
    return left


def _row_with(function: FunctionRecord, position: int, count: int) -> list[FunctionRecord | None]:
    row: list[FunctionRecord | None] = [None] * count
    row[position] = function
    return row


def table_of(records: Records, function: FunctionRecord, columns: Sequence[str]) -> Table:
    """The function's table in the records' own view; of several devices, the first one's."""
    return build_tables(dataclasses.replace(records, functions=(function,)), None, columns)[0]


def match_lines(before: Sequence[Row], after: Sequence[Row]) -> Iterator[LinePair]:
    """The lines of one function, matched by their text, wherever it is indented."""
    old, new = ([row.code.strip() for row in rows] for rows in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, past_first, second, past_second in matcher.get_opcodes():
        pair = _in_order if tag == "equal" else _most_similar
        yield from pair(before[first:past_first], after[second:past_second])


def _in_order(old: Sequence[Row], new: Sequence[Row]) -> Iterator[LinePair]:
    for index in range(max(len(old), len(new))):
        yield LinePair(old[index] if index < len(old) else None, new[index] if index < len(new) else None)


def _most_similar(old: Sequence[Row], new: Sequence[Row]) -> Iterator[LinePair]:
    """Lines that took the place of others: the most similar two are one line, then those before and after them."""
    if len(old) == len(new) or not old or not new or len(old) * len(new) > _MOST_COMPARED:
        yield from _in_order(old, new)
        return
    pairs = itertools.product(range(len(old)), range(len(new)))
    similarity, i, j = max(((_similarity(old[i], new[j]), i, j) for i, j in pairs), key=lambda found: found[0])
    if similarity < _SIMILAR:
        yield from _in_order(old, [])
        yield from _in_order([], new)
        return
    yield from _most_similar(old[:i], new[:j])
    yield LinePair(old[i], new[j])
    yield from _most_similar(old[i + 1 :], new[j + 1 :])


def _similarity(before: Row, after: Row) -> float:
    return difflib.SequenceMatcher(None, before.code.strip(), after.code.strip()).ratio()
