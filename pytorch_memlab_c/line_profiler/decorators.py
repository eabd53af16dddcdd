"""``@profile`` and ``@profile_every``: profiling by decoration, at no cost while no decorated function runs."""

from __future__ import annotations

import atexit
import functools
import inspect
import multiprocessing
import os
import sys
import threading
import uuid
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Protocol, TextIO, TypeVar, overload

from .. import _native
from ..data.device_names import DeviceLike
from ..data.holder_types import HolderRecords
from ..render.showing import show
from ..render.text import write_text
from . import callables, wrappers
from .gathered import Gathered, GatheredDisplay
from .holder_book import HolderBook
from .profiler import Columns, LineProfiler, decorator_profiler
from .records import LineRecords

_profilers: list[LineProfiler] = []
_book = HolderBook()  # who holds the peak, among all functions with `@profile`
_printers: list[_Printer] = []
_home = os.getpid()


#: What can be decorated; the result is of the same type.
T = TypeVar(
    "T",
    bound="Callable[..., Any] | property | classmethod[Any, Any, Any] | staticmethod[Any, Any] |"
    " functools.cached_property[Any] | functools.partialmethod[Any]",
)


class Decorator(Protocol):
    """A decorator that keeps the type of what it decorates."""

    def __call__(self, func: T, /) -> T:
        """Decorate `func`."""


@overload
def profile(func: T, columns: Columns = None, device: DeviceLike | None = None, saved: bool = False) -> T: ...


@overload
def profile(
    func: None = None, columns: Columns = None, device: DeviceLike | None = None, saved: bool = False
) -> Decorator: ...


def profile(func: Any = None, columns: Columns = None, device: DeviceLike | None = None, saved: bool = False) -> Any:
    """Profile a function whenever it runs; the table is printed once when the process ends.

    Use as `@profile` or `@profile(columns=..., device=...)`. Figures are maxima over all runs, on whatever thread.
    The process may end by a normal exit, `sys.exit`, an uncaught exception or Ctrl-C. Forked children print nothing.

    Args:
        func: a function, method, classmethod, staticmethod, property, partial, ...; what comes back is of its kind.
        columns: columns to show, keys of `torch.cuda.memory_stats()` or the profiler's own.
        device: "cpu", "cuda:1", an index, a `torch.device`, or "all"; None for the target of `set_target_gpu`.
        saved: count what autograd keeps for backward, too.

    Raises:
        TypeError: it has no Python code.
        ValueError: an unknown column or device.
    """
    if func is None:
        return functools.partial(profile, columns=columns, device=device, saved=saved)
    profiler = _profiler_for(func, columns, device, saved)
    decorated = callables.rewrap(func, functools.partial(_profiling_wrapper, profiler))
    if profiler not in _profilers:
        _profilers.append(profiler)
    return decorated


def _profiler_for(func: Any, columns: Columns, device: DeviceLike | None, saved: bool) -> LineProfiler:
    same = (profiler for profiler in _profilers if profiler.is_configured_as(func, columns, device, saved))
    return next(same, None) or decorator_profiler(columns, device, _book, saved)


def profile_every(
    output_interval: int = 1,
    enable: bool = True,
    columns: Columns = None,
    device: DeviceLike | None = None,
    saved: bool = False,
) -> Decorator:
    """Profile a function and print, after each `output_interval` executions, the figures of those executions.

    An execution ends when the outermost call returns or raises; a generator or coroutine when it is finished.

    Args:
        output_interval: print after so many executions, at least 1.
        enable: False leaves the function as it is.
        columns: as for `profile`.
        device: as for `profile`.
        saved: as for `profile`.

    Raises:
        TypeError: it has no Python code.
        ValueError: the interval is no whole number of executions; an unknown column or device.
    """
    if type(output_interval) is not int or output_interval < 1:
        raise ValueError(
            f"output_interval is {output_interval!r}; it must be a whole number of executions, at least 1 "
            "(write @profile_every(1), with parentheses)"
        )

    def decorate(func: T) -> T:
        if not enable:
            return func
        alike = (p for p in _printers if p.interval == output_interval)
        same = (p for p in alike if p.profiler.is_configured_as(func, columns, device, saved))
        printer = next(same, None) or _Printer(
            decorator_profiler(columns, device, HolderBook(), saved), output_interval
        )
        decorated: T = callables.rewrap(func, functools.partial(_counting_wrapper, printer))
        if printer not in _printers:
            _printers.append(printer)
        return decorated

    return decorate


def clear_global_line_profiler() -> None:
    """Drop what `@profile` has gathered so far; the functions stay decorated."""
    for profiler in _profilers:
        profiler.clear()


def print_stats(stream: TextIO | None = None) -> None:
    """Print what `@profile` has gathered so far; in a notebook, show it as HTML.

    Profiling goes on, and the whole is printed when the process ends. `clear_global_line_profiler()` starts anew.

    Args:
        stream: write text to it instead.
    """
    shown = _gathered(only_called=False)
    if stream is None:
        show(shown)
    else:
        write_text(stream, str(shown))


profile.print_stats = print_stats  # type: ignore[attr-defined]


def _profiling_wrapper(profiler: LineProfiler, function: FunctionType) -> FunctionType:
    _known_code(function)
    profiler.add_function(function)
    return wrappers.wrap(function, _native.enter, None, _nothing, _Registration(function, profiler))


def _counting_wrapper(printer: _Printer, function: FunctionType) -> FunctionType:
    _known_code(function)
    printer.profiler.add_function(function)
    registration = _Registration(function, printer.profiler, printer)
    return wrappers.wrap(function, printer.enter, printer.left, printer.count, registration)


def _nothing() -> None:
    pass


# ---- copies by value, as cloudpickle and dill make them: counted where they are loaded ----

#: The code objects that are counted, by module and code: that of a copy is equal, but for the name of its file.
_known_codes: dict[tuple[str, CodeType], CodeType] = {}


def _known_code(function: FunctionType) -> CodeType:
    code = inspect.unwrap(function).__code__
    return _known_codes.setdefault((function.__module__, code), code)


def _take_known_code(function: FunctionType) -> None:
    """A copy counts in the same table as what it was made from, however often it is loaded."""
    inspect.unwrap(function).__code__ = _known_code(function)


class _Registration:
    """Is in each wrapper, so that it is copied with it: loading it has the copy's function counted."""

    def __init__(self, function: FunctionType, profiler: LineProfiler, printer: _Printer | None = None) -> None:
        self._function = function
        self._profiler = profiler
        self._printer = printer

    def __reduce__(self) -> tuple[Any, ...]:
        if self._printer is not None:
            return _count_again, (self._function, self._printer)
        return _profile_again, (self._function, *self._profiler.settings())

    def __copy__(self) -> _Registration:
        return self

    def __deepcopy__(self, memo: object) -> _Registration:
        return self


def _profile_again(function: FunctionType, columns: Columns, device: str | None, saved: bool) -> _Registration:
    _take_known_code(function)
    profiler = _profiler_for(function, columns, device, saved)
    profiler.add_function(function)
    if profiler not in _profilers:
        _profilers.append(profiler)
    return _Registration(function, profiler)


def _count_again(function: FunctionType, printer: _Printer) -> _Registration:
    _take_known_code(function)
    printer.profiler.add_function(function)
    return _Registration(function, printer.profiler, printer)


def _printer_again(token: str, interval: int, columns: Columns, device: str | None, saved: bool) -> _Printer:
    """The same printer as before where there is one: in the process that it is from, and for the next copies."""
    printer = next((printer for printer in _printers if printer.token == token), None)
    if printer is None:
        printer = _Printer(decorator_profiler(columns, device, HolderBook(), saved), interval)
        printer.token = token
        _printers.append(printer)
    return printer


class _Printer:
    """Counts executions and prints every N-th time; one count for all threads."""

    def __init__(self, profiler: LineProfiler, interval: int) -> None:
        self.profiler = profiler
        self.interval = interval
        self.token = uuid.uuid4().hex  # the same in all processes that have a copy
        self._executions = 0
        self._lock = threading.RLock()  # a generator may be dropped, and so finished, anywhere
        self._thread = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return _printer_again, (self.token, self.interval, *self.profiler.settings())

    def enter(self, entries: list[Any]) -> None:
        self.left()  # an execution whose count was interrupted
        _native.enter(entries)
        if getattr(self._thread, "outermost", None) is None:
            self._thread.outermost = entries

    def left(self) -> None:
        """Count the outermost execution of this thread if it was left: its list of entries is empty."""
        outermost = getattr(self._thread, "outermost", None)
        if outermost is not None and not outermost:
            self._thread.outermost = None
            self.count()

    def restart(self) -> None:
        """In the child of a fork: another thread may have held the lock."""
        self._lock = threading.RLock()
        self.profiler.start()

    def count(self) -> None:
        """One execution is over. What printing itself runs is not counted."""
        if getattr(self._thread, "printing", False):
            return
        with self._lock:
            self._executions += 1
            if self._executions % self.interval:
                return
            records = self.profiler.records()
            self.profiler.clear()
        self._thread.printing = True
        try:
            _print(self.profiler, records)
        finally:
            self._thread.printing = False


def _print(profiler: LineProfiler, records: LineRecords) -> bool:
    """Whether it could be written."""
    return _write(records.to_text(columns=profiler.columns))


def _write(text: str) -> bool:
    if sys.stdout is None:
        return False
    try:
        write_text(sys.stdout, text + "\n")
        return True
    except (OSError, ValueError) as error:  # standard output is closed: the program continues
        if sys.stderr is not None:
            write_text(sys.stderr, f"pytorch_memlab_c: the profile could not be written: {error}\n")
        return False


def _print_all() -> None:
    if os.getpid() != _home:
        return
    # a child of multiprocessing imports the main module again: it speaks only of what it ran itself
    for part in _gathered(only_called=multiprocessing.parent_process() is not None).parts():
        if not _write(part):
            return


def _gathered(only_called: bool) -> GatheredDisplay:
    """What all functions with `@profile` have gathered; those that were called alone, if asked for."""
    found = [Gathered(profiler.records(), profiler.columns) for profiler in _profilers]
    called = [one for one in found if not only_called or any(function.calls for function in one.records.functions)]
    return GatheredDisplay(called, _book.records() if called else HolderRecords())


def _after_fork() -> None:
    for printer in _printers:
        printer.restart()


atexit.register(_print_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
