"""The variables of a program: local ones of running and suspended frames, and global ones of modules.

None of the program's code runs, and no variable is kept.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType, ModuleType
from typing import Any

from .. import _native
from .insides import Step

_PACKAGE = __name__.partition(".")[0]
_OURS = (_PACKAGE, "contextlib", "functools")
#: The attribute of each kind of suspended call that has its frame.
SUSPENDED = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}
#: The references to the dict that a frame shows its variables in: the frame's, the variable's, and that of the call.
_REFERENCES_TO_SHOWN = 3


def running_frames() -> Iterator[FrameType]:
    """Of functions, those of this thread first, innermost first. Where a module runs, its variables are its globals."""
    for frame in all_running_frames():
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED and not is_ours(frame):
            yield frame


def all_running_frames() -> Iterator[FrameType]:
    """Ours and those of modules too."""
    own = sys._getframe()
    others = [frame for frame in sys._current_frames().values() if frame is not own]
    for start in [own, *others]:
        frame: FrameType | None = start
        while frame is not None:
            yield frame
            frame = frame.f_back


def suspended_frames(running: set[int]) -> list[FrameType]:
    """Of generators and coroutines. Ours, which run now, are left out: holding themselves they would be kept."""
    found = [getattr(one, attribute) for kind, attribute in SUSPENDED.items() for one in _native.walk_instances(kind)]
    alive = [frame for frame in found if frame is not None and id(frame) not in running]
    return [frame for frame in alive if not is_ours(frame)]


def is_ours(frame: FrameType) -> bool:
    """Whether it is a frame of this package, or of a helper that it calls."""
    return root_of(frame.f_globals.get("__name__")) in _OURS


def root_of(module: object) -> str:
    """The first part of a module's name."""
    return module.partition(".")[0] if type(module) is str else ""


def name_of_type(value: object) -> str:
    """The name of a value's type."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name


def locals_of(frame: FrameType, prefix: str = "") -> list[Step]:
    """The local variables.

    Before Python 3.13 a frame keeps the dict that it shows them in, and so what is in there: it is emptied again,
    unless the program has that dict, too.
    """
    shown: Any = frame.f_locals
    found = [(prefix + name, value) for name, value in shown.items()]
    if (
        type(shown) is dict
        and frame.f_code.co_flags & inspect.CO_OPTIMIZED
        and sys.getrefcount(shown) <= _REFERENCES_TO_SHOWN
    ):
        code = frame.f_code
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            shown.pop(name, None)
    return found


def namespace_of(module: ModuleType) -> dict[str, Any]:
    """A module's variables."""
    namespace: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return namespace
