"""From the engine's holders to records: which function, file and source text a line belongs to."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from .. import _native
from ..data.device_names import slot_name
from ..data.holder_types import (
    AUTOGRAD,
    BACKWARD,
    ELSEWHERE,
    LINE,
    Holder,
    HolderRecords,
    OutOfMemory,
    PeakHolders,
    with_rest,
)
from ..data.sources import Source, def_line
from ..engine import following
from ..engine.failed_lines import line_of
from .uncaught import where_memory_ran_out

_KINDS = (LINE, BACKWARD, AUTOGRAD)


class _Function(NamedTuple):
    qualname: str
    filename: str
    first_line: int
    def_line: int
    source: Source | None

    def holder(self, kind: str, size: int, line: int) -> Holder:
        line = self.def_line if line <= self.first_line else line  # a module or a cell begins on line 0
        start, text = self.source or (line, [])
        code = text[line - start].strip() if 0 <= line - start < len(text) else None
        return Holder(kind, size, self.qualname, self.filename, line, code)


class HolderBook:
    """Who holds the peak, for one profiler or for several that share it.

    ``native`` is the engine's part, to be given to each of their tracers. The book knows the functions by their code
    objects' ids: those are alive as long as the tracers that count them.
    """

    def __init__(self) -> None:
        self.native = _native.Holders()
        self._functions: dict[int, _Function] = {}

    def add(self, code: CodeType, qualname: str, source: Source | None) -> None:
        """Name the lines of a code object that one of the profilers counts."""
        start = def_line(code, source[1] if source else None)
        self._functions[id(code)] = _Function(qualname, code.co_filename, code.co_firstlineno, start, source)

    def records(self) -> HolderRecords:
        """What is known so far."""
        failures = self.native.failures()
        return HolderRecords(
            tuple(self._peak(peak) for peak in self.native.snapshot()),
            tuple(map(self._out_of_memory, failures.kept, _innermost(failures.kept, failures.number))),
            failures.number,
            tuple(self._notes()),
        )

    def _holder(self, raw: _native.LineHolder) -> Holder:
        function = self._functions.get(raw.code_id)
        if function is not None:
            return function.holder(_KINDS[raw.kind], raw.bytes, raw.line)
        return Holder(AUTOGRAD if _KINDS[raw.kind] == AUTOGRAD else ELSEWHERE, raw.bytes)

    def _holders(self, raw: list[_native.LineHolder], total: int) -> tuple[Holder, ...]:
        known = [self._holder(holder) for holder in raw]
        return with_rest((holder for holder in known if holder.kind != ELSEWHERE), total)

    def _peak(self, raw: _native.DevicePeak) -> PeakHolders:
        return PeakHolders(
            slot_name(raw.slot),
            raw.peak_bytes,
            self._holder(raw.at),
            self._holders(raw.holders, raw.peak_bytes),
            tuple(raw.series_bytes),
            raw.events_per_point,
        )

    def _out_of_memory(self, raw: _native.FailedAllocation, innermost: Holder | None) -> OutOfMemory:
        return OutOfMemory(
            slot_name(raw.slot),
            raw.asked_bytes,
            raw.allocated_bytes,
            raw.active_bytes,
            _known(raw.reserved_bytes),
            _known(raw.unused_bytes),
            _known(raw.total_bytes),
            self._holder(raw.at),
            self._holders(raw.holders, raw.active_bytes),
            innermost,
        )

    def _notes(self) -> list[str]:
        notes = []
        if following.sampler() == "statistics":
            notes.append(
                "who holds the peak of a CUDA device, and which lines keep more on every run, is unavailable: its "
                "allocator's events are not followed, its statistics are read instead"
            )
        if self.native.failed:
            notes.append("memory ran out while profiling: bytes of some lines are in the row elsewhere")
        return notes


def _known(size: int) -> int | None:
    return None if size < 0 else size


def _innermost(raw: list[_native.FailedAllocation], count: int) -> list[Holder | None]:
    """The program's line of each. An exception that nothing has caught comes from the last one, if that was kept."""
    found = [line_of(one.number) for one in raw]
    if raw and count == len(raw) and found[-1] is None:
        found[-1] = where_memory_ran_out()
    return [line.around(one.at.code_id) if line else None for line, one in zip(found, raw)]
