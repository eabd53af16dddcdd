"""Names of tensors that no model and no optimizer names: by the variables that hold them, a few steps away.

Looked at are the local variables of running frames, and the variables of modules, suspended generators and tracebacks;
then what is in containers and attributes there. None of the program's code runs: no `repr`, no attribute lookup, no
method of its classes. The number of objects looked at is limited, so that a large heap costs no more than a small one.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .. import _native
from ..chains.insides import Step, names_in
from ..chains.variables import locals_of, namespace_of, root_of, running_frames, suspended_frames
from ..data.sources import qualname_of

#: Steps from a variable: `self.cache['k']` has two.
_MOST_STEPS = 3
#: Objects looked at in each step, and those of one container among them.
_MOST_OBJECTS, _MOST_OF_ONE = 200_000, 10_000

_PACKAGE = __name__.partition(".")[0]
_NOT_SEARCHED = {*sys.stdlib_module_names, "torch", "numpy", "IPython", _PACKAGE} - {"__main__"}
_TRACEBACK = BaseException.__dict__["__traceback__"].__get__


def names_of(torch: Any, wanted: set[int]) -> dict[int, str]:
    """The names found for tensors, by their identities."""
    return _Search(torch._C.TensorBase, wanted).run()


class _Search:
    """Level by level, so that each tensor gets the shortest name."""

    def __init__(self, base: type, wanted: set[int]) -> None:
        self._base = base
        self._wanted = wanted
        self._names: dict[int, str] = {}
        self._seen: set[int] = set()
        self._left = _MOST_OBJECTS

    def run(self) -> dict[int, str]:
        level = self._next(_variables())
        for _ in range(_MOST_STEPS):
            if not level or len(self._names) == len(self._wanted):
                break
            self._left = _MOST_OBJECTS
            level = self._next(step for name, value in level for step in names_in(name, value, _MOST_OF_ONE))
        return self._names

    def _is_over(self) -> bool:
        return self._left <= 0 or len(self._names) == len(self._wanted)

    def _next(self, steps: Iterator[Step]) -> list[Step]:
        """Take the tensors among them; what may hold others comes back."""
        holders = []
        for name, value in steps:
            self._left -= 1
            if self._is_over():
                break
            key = id(value)
            if issubclass(type(value), self._base):
                if key in self._wanted:
                    self._names.setdefault(key, name)
            elif key not in self._seen:
                self._seen.add(key)
                holders.append((name, value))
        return holders


def _variables() -> Iterator[Step]:
    frames = list(running_frames())
    for i, frame in enumerate(frames):
        yield from locals_of(frame, "" if i == 0 else f"{qualname_of(frame.f_code)}(): ")
    yield from _globals()
    for frame in suspended_frames({id(frame) for frame in frames}):
        yield from locals_of(frame, f"{qualname_of(frame.f_code)}(): ")
    yield from _tracebacks({id(frame) for frame in frames})


def _globals() -> Iterator[Step]:
    main = sys.modules.get("__main__")
    others = [(name, module) for name, module in list(sys.modules.items()) if root_of(name) not in _NOT_SEARCHED]
    for name, module in [("__main__", main), *others]:
        if isinstance(module, ModuleType) and (name == "__main__" or module is not main):
            prefix = "" if name == "__main__" else f"{name}."
            namespace = namespace_of(module)
            yield from ((prefix + key, value) for key, value in list(namespace.items()) if key != "__builtins__")
    yield from ((f"builtins.{key}", value) for key, value in list(vars(builtins).items()) if key.startswith("_"))


def _tracebacks(running: set[int]) -> Iterator[Step]:
    """The variables of frames that have ended and that an exception still holds."""
    for error in _native.walk_instances(BaseException):
        traceback = _TRACEBACK(error)
        while traceback is not None:
            frame = traceback.tb_frame
            if id(frame) not in running and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                running.add(id(frame))
                yield from locals_of(
                    frame, f"held by the traceback of {type.__dict__['__name__'].__get__(type(error))}: "
                )
            traceback = traceback.tb_next
