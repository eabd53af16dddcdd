"""Which of the lines that run now, or that an exception left, is the program's own innermost one."""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType
from typing import NamedTuple

from ..data.holder_types import UNPROFILED, Holder
from ..data.sources import qualname_of

_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
_Running = tuple[FrameType, int]


class ProgramLine(NamedTuple):
    """A line, as text alone, and the ids of the code objects that ran inside it: code of libraries."""

    holder: Holder
    inside: frozenset[int]

    def around(self, code_id: int) -> Holder | None:
        """The line; None where this code object, which is profiled, ran inside it: then its line says more."""
        return None if code_id in self.inside else self.holder


def is_library(file: str) -> bool:
    """Whether a file is Python's, an installed library's, or of this package."""
    return file.startswith((*_LIBRARIES, _OWN, "<frozen")) or bool(_INSTALLED.intersection(file.split(os.sep)))


def line_of_frame(frame: FrameType | None) -> ProgramLine | None:
    """The line of this frame or of those that called it."""
    return _innermost(_callers(frame))


def line_of_traceback(traceback: TracebackType | None) -> ProgramLine | None:
    """The line of the innermost of these frames."""
    return _innermost(reversed([*_called(traceback)]))


def _callers(frame: FrameType | None) -> Iterator[_Running]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _called(traceback: TracebackType | None) -> Iterator[_Running]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _innermost(lines: Iterable[_Running]) -> ProgramLine | None:
    """The first line of the program's own files, or of any file but ours where there is none."""
    found: _Running | None = None
    inside: set[int] = set()
    for frame, line in lines:
        file = frame.f_code.co_filename
        if not is_library(file):
            return ProgramLine(_holder(frame, line), frozenset(inside))
        inside.add(id(frame.f_code))
        if found is None and not file.startswith(_OWN):
            found = frame, line
    return ProgramLine(_holder(*found), frozenset()) if found else None


def _holder(frame: FrameType, line: int) -> Holder:
    code = frame.f_code
    text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    return Holder(UNPROFILED, 0, qualname_of(code), code.co_filename, line, text or None)
