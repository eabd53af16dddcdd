"""``Records``: what was counted for each line, made from the engine's snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeVar

from .device_names import TARGET, parse_view, slot_name
from .growth import History
from .holder_types import HolderRecords
from .keeper_types import KeeperRecords
from .record_types import FunctionRecord, LineRecord, Stats, merge_entry
from .rising import Stretch
from .run_info import RunInfo
from .saved_types import SavedLines, by_code
from .snapshot_types import CodeCounts, GrowthStretch, LineCounts, LineGrowth, LineStats, SavedCode
from .sources import Source, def_line, qualname_of, source_of

Name = str | tuple[str, str | None]
_NOT_TAKEN = object()
R = TypeVar("R", bound="Records")


@dataclass(frozen=True)
class Records:
    """Everything a report needs, in the order the functions were added.

    ``device`` is the view shown when none is asked for (None: each line on the device that was the
    target), ``target`` the device for functions in which nothing was charged, if it is known.
    """

    functions: tuple[FunctionRecord, ...]
    extra_columns: tuple[str, ...] = ()
    device: str | None = None
    target: str | None = None
    notes: tuple[str, ...] = ()
    #: Who holds the peak, and allocations that failed.
    holders: HolderRecords = HolderRecords()
    #: Whether what autograd saves was counted.
    saved: bool = False
    #: Whether calls were seen on every thread, also on those that ran before.
    all_threads: bool = True
    #: What kept the largest tensors alive, when memory ran out or at the end.
    keepers: KeeperRecords = KeeperRecords()
    #: What was run, where the command line did.
    run: RunInfo | None = None

    @property
    def recorded_columns(self) -> tuple[str, ...]:
        """The columns that are there only because they were asked for."""
        return (*self.extra_columns, "saved") if self.saved else self.extra_columns

    @classmethod
    def from_snapshot(
        cls: type[R],
        snapshot: Iterable[CodeCounts],
        *,
        names: Mapping[Any, Name] | None = None,
        sources: Mapping[Any, Source | None] | None = None,
        extra_columns: Iterable[str] = (),
        device: Any = None,
        target: Any = None,
        notes: Iterable[str] = (),
        holders: HolderRecords | None = None,
        saved: Iterable[SavedCode] | None = None,
    ) -> R:
        """Records of ``Tracer.snapshot()``, or of what has the same names (`snapshot_types.CodeCounts`).

        ``names`` maps to a qualname or ``(qualname, module)``, ``sources`` to what ``source_of``
        gave at registration (looked up now where missing). Both are keyed by ``id(code)``, or by
        the code object: but code objects of two files can be equal, their ids cannot.
        ``extra_columns`` are the names of ``Stats.extra``; ``notes`` are shown below the tables;
        ``saved`` is what ``Tracer.saved()`` gave, None where it was not counted.

        Raises:
            ValueError: ``device`` or ``target`` names no device.
        """
        kept = by_code(saved or ())
        return cls(
            tuple(_function_record(entry, names or {}, sources or {}, kept) for entry in snapshot),
            tuple(extra_columns),
            _named_view(device),
            _named_view(target),
            tuple(notes),
            holders or HolderRecords(),
            saved is not None,
        )


def _named_view(device: Any) -> str | None:
    """The view's name, or None for the target view, which is the default."""
    name = parse_view(device)
    return None if name == TARGET else name


def _look_up(table: Mapping[Any, Any], code: CodeType, missing: Any = None) -> Any:
    """By identity first: code objects of two files may be equal, and hash alike."""
    return table[id(code)] if id(code) in table else table.get(code, missing)


def _function_record(
    entry: CodeCounts,
    names: Mapping[Any, Name],
    sources: Mapping[Any, Source | None],
    saved: Mapping[int, SavedLines],
) -> FunctionRecord:
    code = entry.code
    name = _look_up(names, code) or qualname_of(code)
    qualname, module = (name, None) if isinstance(name, str) else name
    source = _look_up(sources, code, _NOT_TAKEN)
    if source is _NOT_TAKEN:
        source = source_of(code)
    first_line, text = source or (code.co_firstlineno, None)
    def_row = def_line(code, text)
    return FunctionRecord(
        qualname,
        module,
        code.co_filename,
        first_line,
        def_row,
        None if text is None else tuple(text),
        entry.calls,
        _line_records(entry.lines, code.co_firstlineno, def_row, saved.get(id(code), {})),
        code,
    )


def _stats(counted: LineStats) -> Stats:
    return Stats(
        runs=counted.runs,
        active_peak=counted.active_peak_bytes,
        allocated_peak=counted.allocated_peak_bytes,
        reserved_peak=counted.reserved_peak_bytes,
        active_current=counted.active_current_bytes,
        allocated_current=counted.allocated_current_bytes,
        reserved_current=counted.reserved_current_bytes,
        net_first=counted.net_first_bytes,
        net_sum=counted.net_sum_bytes,
        net_max=counted.net_max_bytes,
        net_last=counted.net_last_bytes,
        gross_bytes=counted.gross_bytes,
        allocations=counted.allocations,
        extra=counted.column_values,
        growth=None if counted.growth is None else _history(counted.growth),
        net_later_max=counted.net_later_max_bytes,
    )


def _history(counted: LineGrowth) -> History:
    return History(counted.live_bytes, counted.end_bytes, _stretches(counted.runs), _stretches(counted.calls))


def _stretches(counted: Iterable[GrowthStretch]) -> tuple[Stretch, ...]:
    return tuple(Stretch(one.samples, one.runs, one.held_bytes, one.old_bytes) for one in counted)


def _line_records(
    counted: Iterable[LineCounts], first_line: int, def_row: int, saved: SavedLines
) -> tuple[LineRecord, ...]:
    """The lines by number, with what was recorded on the first decorator's line on the def's.

    A module starts on its line 0, before any of its text.
    """
    by_line: dict[int, LineRecord] = {}
    for counts in sorted(counted, key=lambda counts: counts.line):
        line = LineRecord(
            def_row if counts.line <= first_line else counts.line,
            counts.hits,
            tuple(slot_name(slot) for slot in counts.charged_slots),
            {slot_name(slot): _stats(stats) for slot, stats in counts.stats_by_slot.items()},
            saved.get(counts.line, {}),
        )
        entry = by_line.get(line.line)
        by_line[line.line] = line if entry is None else merge_entry(entry, line)
    return tuple(by_line[number] for number in sorted(by_line))
