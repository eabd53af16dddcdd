"""From the engine's holders to records: which function, file and source text a line belongs to."""

from __future__ import annotations

from types import CodeType
from typing import Any, NamedTuple

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

_KINDS = (LINE, BACKWARD, AUTOGRAD)
_RawHolder = tuple[int, int, int, int]


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
        failures, failed = self.native.failures()
        return HolderRecords(
            tuple(self._peak(*entry) for entry in self.native.snapshot()),
            tuple(self._out_of_memory(*entry) for entry in failed),
            failures,
            tuple(self._notes()),
        )

    def _holder(self, raw: _RawHolder) -> Holder:
        code, line, kind, size = raw
        function = self._functions.get(code)
        if function is not None:
            return function.holder(_KINDS[kind], size, line)
        return Holder(AUTOGRAD if _KINDS[kind] == AUTOGRAD else ELSEWHERE, size)

    def _holders(self, raw: list[_RawHolder], total: int) -> tuple[Holder, ...]:
        known = [self._holder(holder) for holder in raw]
        return with_rest((holder for holder in known if holder.kind != ELSEWHERE), total)

    def _peak(
        self, slot: int, peak: int, at: _RawHolder, holders: list[_RawHolder], step: int, series: list[int]
    ) -> PeakHolders:
        rows = self._holders(holders, peak)
        return PeakHolders(slot_name(slot), peak, self._holder(at), rows, tuple(series), step)

    def _out_of_memory(self, slot: int, asked: int, allocated: int, active: int, *rest: Any) -> OutOfMemory:
        *levels, at, holders = rest
        reserved, unused, total = (None if value < 0 else value for value in levels)
        rows = self._holders(holders, active)
        return OutOfMemory(slot_name(slot), asked, allocated, active, reserved, unused, total, self._holder(at), rows)

    def _notes(self) -> list[str]:
        notes = []
        if following.sampler() == "statistics":
            notes.append(
                "who holds the peak of a CUDA device is unavailable: its allocator's events are not followed, its "
                "statistics are read instead"
            )
        if self.native.failed:
            notes.append("memory ran out while profiling: bytes of some lines are in the row elsewhere")
        return notes
