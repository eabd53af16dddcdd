"""Where the program was when memory ran out, by the exception that nothing has caught yet."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..engine.program_lines import ProgramLine, line_of_traceback


def where_memory_ran_out() -> ProgramLine | None:
    """The program's innermost line in the traceback of an out-of-memory error; None where there is no such error.

    The error is the one that is being handled now, or the last one that ended the program. Only text is kept of it.
    """
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    for one in _chain(error):
        if _is_out_of_memory(one):
            return line_of_traceback(one.__traceback__)
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error, or one that led to it, says that memory ran out."""
    return any(map(_is_out_of_memory, _chain(error)))


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
