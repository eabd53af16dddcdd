"""From records to tables: which rows and columns a view shows, and why a table is empty.

A *view* is "target" (each line on the device that was the target), "all" or one device. One
table is one function in one view; text, HTML and the DataFrame are made from the same tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import advice
from .columns import (
    CPU_FIELDS,
    CUDA_FIELDS,
    OWN_FIELDS,
    SAVED_FIELDS,
    default_columns,
    require_recorded,
    short_headings,
)
from .device_names import ALL, CPU, TARGET, device_order, parse_view
from .record_types import FunctionRecord, LineRecord, Stats
from .records import Records
from .selection import labels, select

_PEAK_OF_OTHERS = (
    "its lines allocated nothing: what raised the peak was allocated by other threads, or by other code while this "
    "function was suspended"
)
FIELDS = {**OWN_FIELDS, **CPU_FIELDS, **CUDA_FIELDS}
_NEVER_CALLED = (
    "never called while it was profiled, as far as can be seen here: other processes, and code compiled by "
    "torch.compile, are not seen"
)
_NO_CALL_SEEN = (
    "no call was seen while it was profiled; other processes, code compiled by torch.compile, threads that ran before "
    "the profiler was enabled, and those that PyTorch starts, such as autograd's for a GPU, are not seen (@profile "
    "sees all threads)"
)


@dataclass(frozen=True)
class Row:
    """One source line: ``values`` in the order of the table's columns, None where missing."""

    line: int
    device: str | None
    values: tuple[int | None, ...]
    code: str


@dataclass(frozen=True)
class Table:
    """One function in one view.

    ``label`` is the function's title, ``heading`` the table's: with "all" it names the device.
    ``devices`` are those the rows belong to, by first line; ``ran`` is False if never called;
    ``headings`` are what the columns are called, in parts that are separated by dots; ``function`` is what it was
    made from.
    """

    label: str
    heading: str
    view: str
    devices: tuple[str, ...]
    columns: tuple[str, ...]
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    ran: bool
    notes: tuple[str, ...]
    function: FunctionRecord = field(repr=False)


def build_tables(
    records: Records,
    func: Any = None,
    columns: str | Iterable[str] | None = None,
    device: Any = None,
) -> list[Table]:
    """The tables of the functions asked for; with the view "all" one for each device.

    Columns that are None are each table's defaults.

    Raises:
        ValueError: unknown function, column or device, or a column that was not recorded.
    """
    wanted = None if columns is None else require_recorded(columns, records.recorded_columns)
    view = _view(records, device)
    titles = labels(records.functions)
    return [
        _table(records, records.functions[i], titles[i], one, wanted, tagged=one != view)
        for i in select(records.functions, func)
        for one in _views_of(records.functions[i], view)
    ]


def default_columns_for(devices: Iterable[str]) -> tuple[str, ...]:
    """The default columns of rows that belong to ``devices``; none at all counts as CUDA."""
    known = set(devices)
    return default_columns(CPU in known, bool(known - {CPU}))


def shared_columns(
    records: Records, func: Any = None, columns: str | Iterable[str] | None = None, device: Any = None
) -> tuple[str, ...]:
    """One set of columns for all tables: those asked for, or the defaults of all devices in them."""
    if columns is not None:
        return require_recorded(columns, records.recorded_columns)
    tables = build_tables(records, func, (), device)
    ran = [table for table in tables if table.ran]
    return default_columns_for(itertools.chain.from_iterable(table.devices for table in ran or tables))


def allocating_devices(function: FunctionRecord) -> tuple[str, ...]:
    """The devices whose memory the function's lines changed: GPUs by number, then the CPU."""
    found = {
        device
        for line in function.lines
        for device, stats in line.stats.items()
        if device != TARGET and _allocated(stats)
    }
    return tuple(sorted(found, key=device_order))


def allocated_in(table: Table) -> bool:
    """Whether a line of the function allocated on a device that the table shows."""
    return any(_allocated(line.stats.get(table.view)) for line in table.function.lines)


def _allocated(stats: Stats | None) -> bool:
    return stats is not None and bool(stats.gross_bytes or stats.allocations or stats.net_sum)


def _view(records: Records, device: Any) -> str:
    return parse_view(records.device if device is None else device)


def _views_of(function: FunctionRecord, view: str) -> tuple[str, ...]:
    """One view a table: "all" becomes the devices that allocated, or the target if none did."""
    return (allocating_devices(function) or (TARGET,)) if view == ALL else (view,)


def _table(
    records: Records,
    function: FunctionRecord,
    label: str,
    view: str,
    wanted: tuple[str, ...] | None,
    tagged: bool,
) -> Table:
    devices = _devices(records, function, view)
    columns = default_columns_for(devices) if wanted is None else wanted
    source = _Values(columns, view, devices, records.extra_columns)
    return Table(
        label,
        f"{label}  [{view}]" if tagged and view != TARGET else label,
        view,
        devices,
        columns,
        short_headings(columns) if wanted is None else columns,
        tuple(_rows(function, source)),
        function.ran,
        tuple(_reasons(records, function, devices, view)),
        function,
    )


def _devices(records: Records, function: FunctionRecord, view: str) -> tuple[str, ...]:
    if view != TARGET:
        return (view,)
    charged = dict.fromkeys(device for line in function.lines for device in line.charged)
    if charged:
        return tuple(charged)
    return () if records.target in (None, TARGET, ALL) else (records.target,)


@dataclass(frozen=True)
class _Values:
    """Reads a line's values for one table."""

    columns: tuple[str, ...]
    view: str
    devices: tuple[str, ...]
    extra_columns: tuple[str, ...]

    def of(self, record: LineRecord) -> tuple[int | None, ...]:
        return tuple(self._value(column, record) for column in self.columns)

    def of_line_never_run(self) -> tuple[int | None, ...]:
        return tuple(0 if column == "hits" else None for column in self.columns)

    def device_of(self, record: LineRecord | None) -> str | None:
        if self.view != TARGET:
            return self.view
        return ",".join(record.charged) or None if record else None

    def _value(self, column: str, record: LineRecord) -> int | None:
        if column == "hits":
            return record.hits
        if column in SAVED_FIELDS:
            return self._saved(column, record)
        stats = self._stats(column, record)
        if stats is None or not stats.runs:
            return None
        if column in FIELDS:
            value: int = getattr(stats, FIELDS[column])
            return value
        return None if stats.extra is None else stats.extra[self.extra_columns.index(column)]

    def _saved(self, column: str, record: LineRecord) -> int | None:
        """What autograd kept on the row's device; on several devices there is no figure in common."""
        devices = [self.view] if self.view != TARGET else list(record.charged)
        found = [record.saved[device] for device in devices if device in record.saved]
        if len(found) != 1:
            return None if found else 0
        value: int = getattr(found[0], SAVED_FIELDS[column])
        return value

    def _stats(self, column: str, record: LineRecord) -> Stats | None:
        """The record the column is read from, or None where it has no meaning for the line.

        A line that was charged to the CPU in one run and to a GPU in another has no figure in
        common: CPU memory and CUDA memory are never added, so only columns that belong to one of
        its devices are shown, from that device's own record.
        """
        if self.view != TARGET:
            return record.on(self.view) if _applies(column, self.view) else None
        devices = record.charged or self.devices[:1]
        fitting = [device for device in devices if _applies(column, device)]
        if len({device == CPU for device in devices}) > 1:
            return record.on(fitting[0]) if len(fitting) == 1 else None
        return record.stats.get(TARGET) if fitting or not devices else None


def _applies(column: str, device: str) -> bool:
    """Whether the column has a meaning on the device: tensor bytes are the CPU's alone, too."""
    return column in OWN_FIELDS or (column in CPU_FIELDS) == (device == CPU)


def _rows(function: FunctionRecord, values: _Values) -> Iterator[Row]:
    """A row for each source line and each line recorded outside of the source."""
    recorded = {line.line: line for line in function.lines}
    text = dict(enumerate(function.source or (), function.first_line))
    for number in sorted({*text, *recorded, function.def_line}):
        record = recorded.get(number)
        yield Row(
            number,
            values.device_of(record),
            values.of(record) if record else values.of_line_never_run(),
            text.get(number, ""),
        )


def _reasons(records: Records, function: FunctionRecord, devices: tuple[str, ...], view: str) -> Iterator[str]:
    """Why there is little to see in the table; nothing where the shown devices allocated."""
    if not function.ran:
        yield never_called(records)
    elif not function.lines:
        yield "called, but none of its lines came to an end while it was profiled"
    elif not any(_allocated(line.stats.get(view)) for line in function.lines):
        others = [d for d in allocating_devices(function) if d not in devices]
        yield _PEAK_OF_OTHERS if _peak_rose(function, view) else _nothing_allocated(devices, others)


def never_called(records: Records) -> str:
    """Why a function may have no figures; where some threads were not watched, it is not said never to have run."""
    return _NEVER_CALLED if records.all_threads else _NO_CALL_SEEN


def _peak_rose(function: FunctionRecord, view: str) -> bool:
    """Whether the level rose while it ran, or between two stretches of a coroutine or generator."""
    found = [stats for line in function.lines if (stats := line.stats.get(view)) is not None and stats.runs]
    return len({stats.active_peak for stats in found}) > 1 or len({stats.allocated_peak for stats in found}) > 1


def _nothing_allocated(devices: tuple[str, ...], others: list[str]) -> str:
    if not others:
        return "no allocation was counted on any device while it ran"
    shown = " and ".join(devices) or "the target device"
    counted = f"{' and '.join(others)} had some: {advice.other_device(others[0])}"
    return f"no allocation was counted on {shown} while it ran; {counted}"
