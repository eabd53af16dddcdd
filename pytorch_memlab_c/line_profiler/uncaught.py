"""Where the program was when memory ran out, by the exception that nothing has caught yet."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import TracebackType

from ..data.holder_types import UNPROFILED, Holder

_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep


def where_memory_ran_out() -> Holder | None:
    """The program's innermost line in the traceback of an out-of-memory error; None where there is no such error.

    The error is the one that is being handled now, or the last one that ended the program. Only text is kept of it.
    """
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    for one in _chain(error):
        if _is_out_of_memory(one):
            return _innermost(one.__traceback__)
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_out_of_memory(error: BaseException) -> bool:
    kind = type(error)
    if kind.__name__ == "OutOfMemoryError":
        return kind.__module__.partition(".")[0] == "torch"
    return kind is RuntimeError and "allocate memory" in str(error)


def _innermost(traceback: TracebackType | None) -> Holder | None:
    """The last line of the program's own files, or of any file but ours where there is none."""
    found: TracebackType | None = None
    own: TracebackType | None = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(_OWN):
            found = traceback
            own = own if file.startswith(_LIBRARIES) or file.startswith("<frozen") else traceback
        traceback = traceback.tb_next
    return _holder(own or found)


def _holder(traceback: TracebackType | None) -> Holder | None:
    if traceback is None:
        return None
    code = traceback.tb_frame.f_code
    line = traceback.tb_lineno
    name = getattr(code, "co_qualname", code.co_name)
    text = linecache.getline(code.co_filename, line, traceback.tb_frame.f_globals).strip()
    return Holder(UNPROFILED, 0, name, code.co_filename, line, text or None)
