"""Where the program was as a GPU's memory ran out, caught or not: noted by an observer that PyTorch calls then."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from .. import _native
from .program_lines import ProgramLine, line_of_frame

#: So many are kept: the first ones, and the last one.
_MOST = 256
_lines: dict[int, ProgramLine] = {}
_attached = False


def observe(torch: Any) -> None:
    """Attach the observer once CUDA is used; PyTorch can not detach it, and an allocator may refuse it."""
    global _attached
    if not _attached and torch.cuda._is_compiled():
        _attached = True
        torch.cuda._lazy_call(lambda: _attach(torch))


def line_of(number: int) -> ProgramLine | None:
    """The program's innermost line as the allocation of this number failed; None where it is not known."""
    return _lines.get(number)


def _attach(torch: Any) -> None:
    with contextlib.suppress(Exception):  # another allocator's, or an older PyTorch: the traceback must do
        torch._C._cuda_attach_out_of_memory_observer(_out_of_memory)


def _out_of_memory(device: int, asked: int, used: int, free: int) -> None:
    with contextlib.suppress(Exception):
        number, line = _native.last_failure(), line_of_frame(sys._getframe(1))
        if number and line is not None:
            if len(_lines) == _MOST:
                _lines.popitem()
            _lines[number] = line
