"""``LineRecords``: what was counted for each line, from the engine's snapshot to its exports.

Record types, tables, JSON and rendering have their own files; this one ties them together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from ..data import records_json
from ..data.device_names import TARGET, parse_view, slot_name
from ..data.growth import History
from ..data.holder_types import HolderRecords
from ..data.record_types import FunctionRecord, LineRecord, Stats, merge_entry
from ..data.sources import Source, def_line, source_of
from ..data.tables import build_tables
from ..engine.saving import SavedLines, SavedSnapshot, by_code
from ..render.files import write_file
from ..render.frame import build_frame
from ..render.holders import devices_of, holders_frame, render_holders
from ..render.kinds import kind_frame

if TYPE_CHECKING:
    import pandas

Name = str | tuple[str, str | None]
RawLine = tuple[int, int, Sequence[int], Mapping[int, Sequence[Any]]]
_NOT_TAKEN = object()
Snapshot = Iterable[tuple[CodeType, int, Iterable[RawLine]]]


@dataclass(frozen=True)
class LineRecords:
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

    @property
    def recorded_columns(self) -> tuple[str, ...]:
        """The columns that are there only because they were asked for."""
        return (*self.extra_columns, "saved") if self.saved else self.extra_columns

    @classmethod
    def from_snapshot(
        cls,
        snapshot: Snapshot,
        *,
        names: Mapping[Any, Name] | None = None,
        sources: Mapping[Any, Source | None] | None = None,
        extra_columns: Iterable[str] = (),
        device: Any = None,
        target: Any = None,
        notes: Iterable[str] = (),
        holders: HolderRecords | None = None,
        saved: SavedSnapshot | None = None,
    ) -> LineRecords:
        """Records of ``Tracer.snapshot()``: ``(code, calls, lines)`` for each code object.

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

    def to_dataframe(
        self,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
        kind: str = "lines",
    ) -> pandas.DataFrame:
        """One row a source line (with ``device="all"``: a line and device that allocated).

        Index ``function`` and ``line``; the columns under their full names (Int64), ``device`` and
        ``code``. A line never run has hits 0 and missing values; so has a column that does not
        apply to the row's device. ``attrs["notes"]`` says what a text report says below its tables.

        Args:
            func: a function, its qualname, or a list of them; None: all.
            columns: names as ``columns.check_columns`` takes them; None: the device's defaults.
            device: "target", "all", "cpu", "cuda:N"; None: the records' own view.
            kind: "lines"; "holders": one row a line that held bytes at a device's peak, with
                ``device``, ``function``, ``file``, ``line``, ``kind``, ``bytes``, ``share`` and ``code``. Those of a
                device add up to its peak; the other arguments do not apply; "growth": a line's first and later runs
                apart, and whether it keeps growing; "saved": what autograd kept for backward. ``columns`` is for "lines"
                alone.

        Raises:
            ValueError: unknown kind, function, column or device, or a column that was not recorded.
        """
        if kind == "holders":
            frame = holders_frame(self.holders)
            frame.attrs["notes"] += self.notes
            return frame
        if kind != "lines":
            return kind_frame(self, kind, func, device)
        return build_frame(self, func, columns, device)

    def to_text(self, func: Any = None, columns: str | Iterable[str] | None = None, device: Any = None) -> str:
        """The text report; arguments and errors as for ``to_dataframe``."""
        from ..render.sections import sections_text

        return self.tables_text(func, columns, device) + sections_text(self, func=func, device=device)

    def tables_text(self, func: Any = None, columns: str | Iterable[str] | None = None, device: Any = None) -> str:
        """``to_text`` without what stands below: growing lines, and what autograd kept."""
        from ..render.text import render_text

        tables = build_tables(self, func, columns, device)
        return render_text(tables, self.notes, render_holders(self.holders, devices_of(tables)))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """All records as JSON text with a version field; written to ``path`` too, whole or not."""
        text = records_json.dumps(self)
        if path is not None:
            write_file(path, text)
        return text

    @classmethod
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> LineRecords:
        """What ``to_json`` gave, from the file or the text itself (a str that starts with ``{``).

        Raises:
            ValueError: not such a report, or written by a newer version.
        """
        if isinstance(path_or_text, str) and path_or_text.lstrip().startswith("{"):
            return cls(**records_json.loads(path_or_text))
        with open(path_or_text, encoding="utf-8") as file:
            return cls(**records_json.loads(file.read()))

    def to_csv(
        self,
        path: str | os.PathLike[str] | None = None,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
    ) -> str:
        """The rows of ``to_dataframe`` as CSV text; written to ``path`` too, whole or not."""
        text: str = self.to_dataframe(func, columns, device).to_csv(lineterminator="\n")
        if path is not None:
            write_file(path, text)
        return text

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        func: Any = None,
        columns: str | Iterable[str] | None = None,
        device: Any = None,
    ) -> str:
        """One HTML page that needs no network; written to ``path`` too, whole or not at all.

        Functions are in the order of their peaks. Arguments and errors as for ``to_dataframe``.
        """
        from ..render.page import render_page

        text = render_page(self, func, columns, device)
        if path is not None:
            write_file(path, text)
        return text


def _named_view(device: Any) -> str | None:
    """The view's name, or None for the target view, which is the default."""
    name = parse_view(device)
    return None if name == TARGET else name


def _look_up(table: Mapping[Any, Any], code: CodeType, missing: Any = None) -> Any:
    """By identity first: code objects of two files may be equal, and hash alike."""
    return table[id(code)] if id(code) in table else table.get(code, missing)


def _function_record(
    entry: tuple[CodeType, int, Iterable[RawLine]],
    names: Mapping[Any, Name],
    sources: Mapping[Any, Source | None],
    saved: Mapping[int, SavedLines],
) -> FunctionRecord:
    code, calls, raw_lines = entry
    name = _look_up(names, code) or getattr(code, "co_qualname", code.co_name)
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
        calls,
        _line_records(raw_lines, code.co_firstlineno, def_row, saved.get(id(code), {})),
        code,
    )


def _stats(values: Sequence[Any]) -> Stats:
    stats = Stats(*values)
    return stats._replace(growth=History.of(stats.growth))


def _line_records(
    raw_lines: Iterable[RawLine], first_line: int, def_row: int, saved: SavedLines
) -> tuple[LineRecord, ...]:
    """The lines by number, with what was recorded on the first decorator's line on the def's. A module starts on its
    line 0, before any of its text."""
    by_line: dict[int, LineRecord] = {}
    for lineno, hits, charged, stats in sorted(raw_lines, key=lambda raw: raw[0]):
        line = LineRecord(
            def_row if lineno <= first_line else lineno,
            hits,
            tuple(slot_name(slot) for slot in charged),
            {slot_name(slot): _stats(values) for slot, values in stats.items()},
            saved.get(lineno, {}),
        )
        entry = by_line.get(line.line)
        by_line[line.line] = line if entry is None else merge_entry(entry, line)
    return tuple(by_line[number] for number in sorted(by_line))
