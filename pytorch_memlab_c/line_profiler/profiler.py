"""``LineProfiler``: the peak of a device's memory for each line of the functions given to it."""

from __future__ import annotations

import builtins
import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TextIO

from .. import _native, simulate
from ..data.columns import MEMORY_STATS_KEYS, asks_for_saved, check_columns, extra_columns, require_recorded
from ..data.device_names import DeviceLike, slot_name
from ..data.saved_types import SAVED_UNSEEN
from ..data.sources import Source, source_note, source_of
from ..engine import allocator_stats, following
from ..engine.saving import DECORATORS, new_group
from ..engine.saving import follow as follow_saved
from ..engine.saving import is_followed as saved_is_followed
from ..engine.target_device import available_slot, default_view, parse_slot, target_name
from ..render.text import write_text
from . import callables, instructions
from .display import RecordsDisplay
from .holder_book import HolderBook
from .module_methods import with_modules
from .records import LineRecords
from .uncounted import uncounted

if TYPE_CHECKING:
    import pandas

Columns = str | Iterable[str] | None

#: Columns that need the allocator's statistics are recorded for this many runs of a line, if none was asked for.
UNASKED_RUNS = 100
_EVERY_RUN = 2**62


class LineProfiler(_native.Switch):
    """Measures the given functions line by line between `enable()` and `disable()`, or inside a `with` block.

    Bytes are those of PyTorch's own allocator: peaks are the highest value that active, allocated or reserved bytes
    (CPU: tensor bytes) reached while a line ran, with all that it called, on any thread.

    Args:
        functions: functions, methods, classmethod, staticmethod, property, partial, lru_cache, generators, coroutines.
        target_gpu: show this CUDA device; an index, a name or a `torch.device`.
        device: the same for any device: "cpu", "cuda:1", or "all".
        columns: the columns to record. The default columns always are; others (keys of `torch.cuda.memory_stats()`)
            need a reading of the allocator's statistics for each run of a line. If None, those are recorded for the
            first 100 runs of each line.
        saved: count what autograd keeps for backward, too; as if one of `columns` is about that.

    Raises:
        TypeError: a function has no Python code.
        ValueError: an unknown column or device.
        RuntimeError: a CUDA device, where PyTorch has no CUDA.
    """

    def __init__(
        self,
        *functions: Any,
        target_gpu: DeviceLike | None = None,
        device: DeviceLike | None = None,
        columns: Columns = None,
        saved: bool = False,
    ) -> None:
        if target_gpu is not None and device is not None:
            raise ValueError("give target_gpu or device, not both: they name the same thing")
        device = _checked_device(device if target_gpu is None else target_gpu, available_slot)
        self._prepare(
            device, columns, MEMORY_STATS_KEYS, HolderBook(), new_group() if saved or asks_for_saved(columns) else 0
        )
        for function in functions:
            self.add_function(function)

    def _prepare(
        self,
        device: str | None,
        columns: Columns,
        unasked: Iterable[str],
        book: HolderBook,
        saved_group: int = 0,
    ) -> None:
        following.prepare()
        if saved_group:
            follow_saved(following.torch_module())
        self._saved = bool(saved_group)
        self._sees_all_threads = False
        self._device = device
        self._columns = None if columns is None else check_columns(columns)
        self._extra = extra_columns(unasked if self._columns is None else self._columns)
        ids = tuple(allocator_stats.column_id(name) for name in self._extra)
        self._book = book
        runs = UNASKED_RUNS if columns is None else _EVERY_RUN
        self._tracer = _native.Tracer(ids, runs, book.native, saved_group)
        self._names: dict[int, tuple[str, str | None]] = {}
        self._sources: dict[int, Source | None] = {}
        self._source_notes: dict[int, str] = {}

    def add_function(self, function: Any) -> None:
        """Measure this function too, from its next call on. Adding it again changes nothing."""
        for plain in callables.functions_of(function):
            self.add_code(plain.__code__, plain.__qualname__, plain.__module__)

    def add_code(self, code: CodeType, qualname: str, module: str | None = None, source: Source | None = None) -> None:
        """Measure a code object that no function holds: a module's, or a notebook cell's.

        Also that of a function which the cell will define. `source` is its first line's number and its lines, looked up
        if None.
        """
        if self._tracer.add_code(code, *callables.line_range(code), instructions.parts_of_lines(code)):
            self._names[id(code)] = (qualname, module)
            self._sources[id(code)] = self._look_up_source(code, qualname, module) if source is None else source
            self._book.add(code, qualname, self._sources[id(code)])

    def _look_up_source(self, code: CodeType, qualname: str, module: str | None) -> Source | None:
        source = source_of(code, module)
        note = source_note(code, source)
        if note is not None:
            self._source_notes[id(code)] = f"{qualname}: {note}"
        return source

    def is_configured_as(self, function: Any, columns: Columns, device: Any, saved: bool = False) -> bool:
        """Whether it measures this function's code already, shown in this way.

        A `def` that runs again makes another function, of the same code.
        """
        codes = {id(plain.__code__) for plain in callables.functions_of(function)}
        wanted = None if columns is None else check_columns(columns)
        shown = self._columns == wanted and self._device == _checked_device(device, parse_slot)
        return shown and self._saved == (saved or asks_for_saved(columns)) and codes <= self._names.keys()

    def settings(self) -> tuple[tuple[str, ...] | None, str | None, bool]:
        """Columns, device and whether it counts what autograd saves; plain values."""
        return self._columns, self._device, self._saved

    def _before_enable(self) -> _native.Tracer:
        """What `enable` does first; the rest, and all of `disable`, is in C: no signal handler can raise in between."""
        following.prepare()
        _follow_new_threads()
        return self._tracer

    def _after_disable(self) -> None:
        _leave_new_threads()

    def _recorded(self) -> tuple[str, ...]:
        return (*self._extra, "saved") if self._saved else self._extra

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns shown where none are named; None for the defaults of the device shown."""
        return self._columns

    @columns.setter
    def columns(self, columns: Columns) -> None:
        self._columns = None if columns is None else require_recorded(columns, self._recorded())

    def start(self) -> None:
        """Record whenever a hook runs, without installing one: for the decorators, which do that themselves."""
        self._tracer.start()

    def clear(self) -> None:
        """Forget all figures; the functions stay."""
        self._tracer.clear()

    def records(self) -> LineRecords:
        """Everything counted so far, independent of this profiler from then on."""
        view = self._device if self._device is not None else default_view()
        records = LineRecords.from_snapshot(
            self._tracer.snapshot(),
            names=self._names,
            sources=self._sources,
            extra_columns=self._extra,
            device=view,
            target=target_name() if view is None else None if view == "all" else view,
            notes=self._notes(view),
            holders=self._book.records(),
            saved=self._tracer.saved() if self._saved else None,
        )
        notes = (*records.notes, *uncounted(records.functions))
        seen = self._sees_all_threads or _native.engine() == "monitoring"
        records = dataclasses.replace(records, notes=notes, all_threads=seen)
        return with_modules(records, following.torch_module())

    def display(self, func: Any = None, columns: Columns = None) -> RecordsDisplay:
        """The table: HTML in a notebook, text elsewhere; in a script it is printed, and returned as well.

        `func` is a function, its qualname, or a list of them; `columns` as in `torch.cuda.memory_stats()`.
        """
        shown = RecordsDisplay(self.records(), func, self._shown(columns))
        if not hasattr(builtins, "get_ipython") and not hasattr(sys, "ps1"):
            write_text(sys.stdout, f"{shown}\n")
        return shown

    def print_stats(self, func: Any = None, columns: Columns = None, stream: TextIO | None = None) -> None:
        """Write the text table to `stream` (standard output)."""
        text = self.records().to_text(func, self._shown(columns))
        write_text(sys.stdout if stream is None else stream, text + "\n")

    def to_dataframe(self, func: Any = None, columns: Columns = None, kind: str = "lines") -> pandas.DataFrame:
        """One row a source line; index (`function`, `line`), bytes as integers, `device` and `code`.

        `kind`: "lines", "holders", "growth" or "saved", see `LineRecords.to_dataframe`.
        """
        return self.records().to_dataframe(func, self._shown(columns), kind=kind)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """All figures, for `LineRecords.from_json`; the file is written whole or not at all."""
        self.records().to_json(path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """The rows of `to_dataframe()`."""
        self.records().to_csv(path, columns=self._columns)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """One page that needs no network."""
        self.records().to_html(path, columns=self._columns)

    def _shown(self, columns: Columns) -> Columns:
        return self._columns if columns is None else columns

    def _notes(self, view: str | None) -> list[str]:
        notes = []
        if self._tracer.interrupted:
            notes.append("interrupted: another tracer (a debugger?) took the profiler's place; figures are incomplete")
        if _native.engine() == "settrace: no tool id":
            notes.append(_NO_TOOL)
        if self._tracer.unseen:
            notes.append(following.UNSEEN)
        if self._tracer.failed:
            notes.append("memory ran out while profiling; figures are incomplete")
        if self._saved and not saved_is_followed():
            notes.append(SAVED_UNSEEN)
        if view in ("cpu", "all") and not following.cpu_is_followed():
            notes.append("CPU tensors cannot be measured on this platform: their allocations are not visible here")
        return [*notes, *self._source_notes.values(), *_device_notes(self._device), *_simulated_note(view)]


_NO_TOOL = (
    "other tools hold the ids 3 and 4 of sys.monitoring: the trace function is used, which costs more, and threads "
    "that PyTorch starts are not seen"
)


def _simulated_note(view: str | None) -> list[str]:
    """That CUDA figures are simulated: of the device shown, and of others that the records may hold."""
    torch = following.torch_module()
    if not simulate.is_enabled() or (view == "cpu" and (torch is None or not torch.cuda.is_initialized())):
        return []
    return [f"CUDA figures are {simulate.describe()}"]


def _device_notes(asked: str | None) -> list[str]:
    """Why the device shown is not the one that the user may expect."""
    torch = following.torch_module()
    if torch is None or asked in ("all", "cpu"):
        return []
    if asked is not None:
        return _missing_device(asked)
    if default_view() != "cpu":
        return []
    why = "there is no CUDA device" if torch.cuda._is_compiled() else "this build of PyTorch has no CUDA"
    return [f"CUDA is not available ({why}): CPU tensors are shown"]


def _missing_device(view: str) -> list[str]:
    try:
        available_slot(view)
    except (RuntimeError, ValueError) as error:
        return [str(error)]
    return []


def _checked_device(device: Any, slot_of: Callable[[Any], int]) -> str | None:
    if device is None or (isinstance(device, str) and device == "all"):
        return device
    return slot_name(slot_of(device))


def decorator_profiler(columns: Columns, device: Any, book: HolderBook, saved: bool = False) -> LineProfiler:
    """A profiler that records without `enable`, for functions that install the hook themselves.

    Whether the device is there is asked when the table is shown: decorating must not fail for that.
    """
    profiler = LineProfiler.__new__(LineProfiler)
    group = DECORATORS if saved or asks_for_saved(columns) else 0
    profiler._prepare(_checked_device(device, parse_slot), columns, (), book, group)
    profiler._sees_all_threads = True  # each call installs the hook on its own thread
    profiler.start()
    return profiler


# ---- threads that start while a profiler is enabled ----

_lock = threading.Lock()
_outer_trace: Any = None


def _follow_new_threads() -> None:
    """Before the first profiler is enabled. Where the last one's end was interrupted, nothing is to be done."""
    global _outer_trace
    if _native.engine() == "monitoring":  # its events come from every thread
        return
    with _lock:
        if not _native.any_enabled() and threading.gettrace() is not _first_event:
            _outer_trace = threading.gettrace()
            threading.settrace(_first_event)


def _leave_new_threads() -> None:
    """Unless some profiler is enabled."""
    with _lock:
        if not _native.any_enabled() and threading.gettrace() is _first_event:
            threading.settrace(_outer_trace)


def _first_event(frame: FrameType, event: str, arg: Any) -> Any:
    """A new thread's first trace event.

    The tracer meant for new threads is installed first, the profiler's hook above it.
    """
    outer = _outer_trace
    sys.settrace(outer)
    local = outer(frame, event, arg) if outer is not None else None
    if _native.any_enabled():
        _native.adopt_thread()
    else:
        _leave_new_threads()
    return local


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    if threading.gettrace() is _first_event:
        threading.settrace(_outer_trace)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
