"""Each function in one row: its highest peak, and the line that reached it.

CUDA's active bytes and the CPU's tensor bytes are different scopes: each has its own list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..data.device_names import CPU
from ..data.records import Records
from ..data.tables import Row, build_tables

#: The scope of a list's bytes: what it is called, and the column its peaks are read from.
SCOPES = (
    ("CUDA memory (active bytes)", "active_bytes.all.peak"),
    ("CPU memory (tensor bytes)", "tensor_bytes.peak"),
)
_COLUMNS = (*(column for _, column in SCOPES), "net.last", "allocated")


class Summary(NamedTuple):
    """One table's figures in one scope, in bytes.

    ``table``: its position among the tables. ``net`` is the sum over its lines, of the last run of each. ``line``
    and ``code`` belong to the line that reached the peak; of several, to the one that allocated most.
    """

    table: int
    devices: tuple[str, ...]
    peak: int
    net: int
    line: int
    code: str


def summaries(records: Records, func: Any = None, device: Any = None) -> list[list[Summary]]:
    """For each of ``SCOPES``, the functions with figures in it, the highest peak first.

    ``Summary.table`` counts the tables that ``build_tables`` gives for the same ``func`` and ``device``.
    """
    tables = build_tables(records, func, _COLUMNS, device)
    lists = []
    for scope in range(len(SCOPES)):
        found = (_summary(i, _devices(table.devices, scope), table.rows, scope) for i, table in enumerate(tables))
        lists.append(sorted(filter(None, found), key=lambda summary: -summary.peak))
    return lists


def order_by_peak(lists: Iterable[Sequence[Summary]], count: int) -> list[int]:
    """The positions of ``count`` tables: those in the lists in their order, then the others."""
    listed = dict.fromkeys(summary.table for entries in lists for summary in entries)
    return [*listed, *(i for i in range(count) if i not in listed)]


def _devices(devices: Iterable[str], scope: int) -> tuple[str, ...]:
    return tuple(device for device in devices if (device == CPU) == bool(scope))


def _summary(table: int, devices: tuple[str, ...], rows: Iterable[Row], scope: int) -> Summary | None:
    measured = list(_measured(rows, scope))
    if not measured:
        return None
    top = max(measured, key=lambda row: (row.values[scope] or 0, row.values[-1] or 0, -row.line))
    net = sum(row.values[-2] or 0 for row in measured)
    return Summary(table, devices, top.values[scope] or 0, net, top.line, top.code.strip())


def _measured(rows: Iterable[Row], scope: int) -> Iterator[Row]:
    return (row for row in rows if row.values[scope] is not None)
