"""Which of the lines that run now, or that an exception left, is the program's own innermost one."""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType

from ..data.holder_types import UNPROFILED, Holder

_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
_Running = tuple[FrameType, int]


def is_library(file: str) -> bool:
    """Whether a file is Python's, an installed library's, or of this package."""
    return file.startswith((*_LIBRARIES, _OWN, "<frozen")) or bool(_INSTALLED.intersection(file.split(os.sep)))


def line_of_frame(frame: FrameType | None) -> Holder | None:
    """The line of this frame or of those that called it; only text is kept."""
    return _innermost(_callers(frame))


def line_of_traceback(traceback: TracebackType | None) -> Holder | None:
    """The line of the innermost of these frames; only text is kept."""
    return _innermost(reversed([*_called(traceback)]))


def _callers(frame: FrameType | None) -> Iterator[_Running]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _called(traceback: TracebackType | None) -> Iterator[_Running]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _innermost(lines: Iterable[_Running]) -> Holder | None:
    """The first line of the program's own files, or of any file but ours where there is none."""
    found: _Running | None = None
    for frame, line in lines:
        file = frame.f_code.co_filename
        if not is_library(file):
            return _holder(frame, line)
        if found is None and not file.startswith(_OWN):
            found = frame, line
    return _holder(*found) if found else None


def _holder(frame: FrameType, line: int) -> Holder:
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)
    text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    return Holder(UNPROFILED, 0, name, code.co_filename, line, text or None)
