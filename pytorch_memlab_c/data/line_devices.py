"""Which devices' own records of a line belong to a view, for reports that show one device a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .device_names import ALL, TARGET, device_order, parse_view
from .record_types import FunctionRecord, LineRecord
from .records import Records
from .selection import labels, select


class LineOnDevice(NamedTuple):
    """A line on one device."""

    label: str
    function: FunctionRecord
    record: LineRecord
    device: str
    code: str


def lines_on_devices(records: Records, func: Any = None, device: Any = None) -> Iterator[LineOnDevice]:
    """Each line that ran, once for each device that the view means; functions in order, lines by number."""
    view = parse_view(records.device if device is None else device)
    titles = labels(records.functions)
    for i in select(records.functions, func):
        function = records.functions[i]
        text = dict(enumerate(function.source or (), function.first_line))
        for record in function.lines:
            for name in _devices(record, view):
                yield LineOnDevice(titles[i], function, record, name, text.get(record.line, "").rstrip("\n"))


def _devices(record: LineRecord, view: str) -> list[str]:
    """The devices that were the target; with "all" those that the line has figures of."""
    if view == TARGET:
        return list(record.charged)
    if view != ALL:
        return [view]
    return sorted({*record.stats, *record.saved} - {TARGET}, key=device_order)
