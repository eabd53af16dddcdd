"""Tables as one pandas DataFrame. pandas is imported when the first frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from ..data.records import Records
from ..data.tables import Row, Table, build_tables, shared_columns
from .text import titled_notes

if TYPE_CHECKING:
    import pandas


def build_frame(
    records: Records,
    func: Any = None,
    columns: str | Iterable[str] | None = None,
    device: Any = None,
) -> pandas.DataFrame:
    """The tables as rows of one frame, see ``LineRecords.to_dataframe``."""
    import pandas

    shared = shared_columns(records, func, columns, device)
    tables = build_tables(records, func, shared, device)
    rows = list(_rows_in_line_order(tables))
    data: dict[str, Any] = {
        column: pandas.array([row.values[i] for _, row in rows], dtype="Int64") for i, column in enumerate(shared)
    }
    data["device"] = pandas.array([row.device for _, row in rows], dtype="string")
    data["code"] = pandas.array([row.code for _, row in rows], dtype="string")
    frame: pandas.DataFrame = pandas.DataFrame(data, index=_index(rows))
    titled = chain.from_iterable(map(titled_notes, tables))
    frame.attrs["notes"] = list(dict.fromkeys((*titled, *records.notes)))
    return frame


def _rows_in_line_order(tables: list[Table]) -> Iterator[tuple[str, Row]]:
    """Functions in order; within one, its tables (one a device) side by side, line by line."""
    for label, group in groupby(tables, key=lambda table: table.label):
        for rows in zip(*(table.rows for table in group)):
            yield from ((label, row) for row in rows)


def _index(rows: list[tuple[str, Row]]) -> pandas.MultiIndex:
    import pandas

    functions = pandas.Index([label for label, _ in rows], dtype=object)
    lines = pandas.Index([row.line for _, row in rows], dtype="int64")
    index: pandas.MultiIndex = pandas.MultiIndex.from_arrays([functions, lines], names=["function", "line"])
    return index
