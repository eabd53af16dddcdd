"""What a failing test says, and the summary of the highest tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import simulate
from ..data.device_names import CPU, device_order
from ..render.text import clean, clean_code, readable_size

if TYPE_CHECKING:
    from ..data.record_types import FunctionRecord, LineRecord, Stats
    from ..line_profiler.records import LineRecords
    from ..process.peak import peak_memory
    from .limits import Limit


class _Line(NamedTuple):
    function: FunctionRecord
    line: LineRecord
    stats: Stats


def scope(device: str) -> str:
    """A device, and which of its bytes are limited."""
    if device == CPU:
        return f"{device} (tensor bytes)"
    simulated = ", simulated" if device.startswith("cuda") and simulate.is_enabled() else ""
    return f"{device} (allocated bytes{simulated})"


def describe_excess(limit: Limit, block: peak_memory, records: LineRecords | None) -> str:
    """The limit, the peak, and the lines at the peak."""
    rows = [
        ("limit", limit.size, ""),
        ("peak", block.delta_bytes, "above the start of the test"),
        ("start", block.baseline_bytes, "held when the test began, not counted"),
    ]
    width = max(len(f"{size:,}") for _, size, _ in rows)
    title = f"{readable_size(block.delta_bytes)} on {scope(block.device)}, the limit is {limit.text}"
    lines = [title, ""]
    lines += [f"  {name:<5} {readable_size(size):>9}  {size:>{width},} bytes {what}" for name, size, what in rows]
    return "\n".join([*map(str.rstrip, lines), "", *_peak_lines(block, records)])


def _peak_lines(block: peak_memory, records: LineRecords | None) -> Iterator[str]:
    highest = [] if records is None else list(_highest_lines(records, block.device))
    if not highest:
        yield "no line of the functions under test was seen; name others by functions=[...] in the mark"
        return
    highest.sort(key=lambda entry: -entry.stats.gross_bytes)  # what a line calls is in it: callers come first
    at_peak = [entry for entry in highest if entry.stats.allocated_peak >= block.peak_bytes]
    if at_peak:
        yield "lines at the peak, each with what it calls:"
    else:
        yield "the peak was reached in none of these functions (name others by functions=[...]); their highest lines:"
    yield ""
    yield f"  {'peak':>9} {'net':>9} {'allocated':>9} {'hits':>5}  line"
    for entry in at_peak or highest:
        yield from _describe_line(entry, block.baseline_bytes)
    yield from (f"note: {clean(note)}" for note in (records.notes if records else ()))


def _highest_lines(records: LineRecords, device: str) -> Iterator[_Line]:
    """Of each function the highest line; of several, the one that allocated most, then the first."""
    for function in records.functions:
        measured = [_Line(function, line, stats) for line in function.lines if (stats := line.on(device)) and line.hits]
        if measured:
            yield max(measured, key=lambda entry: (entry.stats.allocated_peak, entry.stats.gross_bytes))


def _describe_line(entry: _Line, baseline: int) -> Iterator[str]:
    function, line, stats = entry
    sizes = (max(stats.allocated_peak - baseline, 0), stats.net_sum, stats.gross_bytes)
    cells = " ".join(f"{readable_size(size):>9}" for size in sizes)
    yield f"  {cells} {line.hits:>5}  {clean(f'{_shown_path(function.filename)}:{line.line} in {function.qualname}')}"
    text = dict(enumerate(function.source or (), function.first_line)).get(line.line)
    if text is not None:
        yield f"{'':>41}{clean_code(text).strip()}"


def _shown_path(filename: str) -> str:
    """Relative to the current directory, if it is below that."""
    here = os.path.join(os.getcwd(), "")
    return filename.removeprefix(here)


def summarize(tests: Mapping[tuple[str, str], Mapping[str, Any]], count: int) -> Iterator[str]:
    """The `count` highest tests of each device; the keys are device and test."""
    devices = dict.fromkeys(device for device, _ in tests)
    for device in sorted(devices, key=device_order):
        measured = [(test, values) for (on, test), values in tests.items() if on == device]
        measured.sort(key=lambda entry: -entry[1]["peak"])
        yield f"{measured[0][1]['scope']}: the highest {min(count, len(measured))} of {len(measured)} tests"
        yield from _summary_rows(measured[:count])


def _summary_rows(measured: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterable[str]:
    limited = any(values["limit"] is not None for _, values in measured)
    for test, values in measured:
        limit = values["limit"]
        shown = "" if limit is None else f"{'OVER' if values['peak'] > limit else 'of'} {readable_size(limit)}"
        yield f"  {readable_size(values['peak']):>9}{f' {shown:<15}' if limited else ''}  {test}"
