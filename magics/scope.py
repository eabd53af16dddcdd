"""Where the code of `%mlrun` runs: the names that the same code would see and set if it were written there."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

_OWN = __name__.rpartition(".")[0]
_WRITES_THROUGH = sys.version_info >= (3, 13)  # PEP 667: frame.f_locals is the frame's variables, no copy


@dataclass
class Scope:
    """Global and local names, as `exec` takes them."""

    globals: dict[str, Any]
    locals: MutableMapping[str, Any]

    def run(self, code: CodeType) -> Any:
        """Run a module's code object; a coroutine if it awaits."""
        __tracebackhide__ = True
        return eval(code, self.globals, self.locals)

    def take(self, name: str) -> Any:
        """The value of a variable, which then is no more; None if there is none."""
        return self.locals.pop(name, None)

    def close(self) -> None:
        """Let go of what it refers to."""


def user_frame(shell: Any) -> FrameType | None:
    """The frame of the user's code that called the magic; None if other code did (a test, an application)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith((_OWN, "IPython.")):
        frame = frame.f_back
    return frame if frame is not None and frame.f_globals is shell.user_global_ns else None


def scope_of(shell: Any, frame: FrameType | None) -> Scope:
    """The scope of the code in `frame`: the user's namespace, or that of a class body or function in it."""
    if frame is None:
        return Scope(shell.user_global_ns, shell.user_ns)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return _FunctionScope(frame)
    return Scope(frame.f_globals, frame.f_locals)


class _FunctionScope(Scope):
    """Inside a function: its variables can be read and set, also from comprehensions and functions in the code."""

    def __init__(self, frame: FrameType) -> None:
        self._frame: FrameType | None = frame
        names = _Variables(frame)
        super().__init__(_Globals(frame, names), names)

    def take(self, name: str) -> Any:
        assert isinstance(self.locals, _Variables)
        return self.locals.own.pop(name, None)

    def close(self) -> None:
        if self._frame is not None:
            kept = {name: value for name, value in self.globals.items() if name not in ("__builtins__", "__name__")}
            self._frame.f_globals.update(kept)
        self._frame = None


class _Variables(MutableMapping[str, Any]):
    """A function's variables, and behind them the globals: the code's own look-up stops at `exec`'s dictionaries."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame
        self.own: dict[str, Any] = {}  # the magic's variables, which are none of the function's

    def __getitem__(self, name: str) -> Any:
        variables = self._frame.f_locals
        return variables[name] if name in variables else self._frame.f_globals[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_mlrun_"):
            self.own[name] = value
            return
        self._frame.f_locals[name] = value
        _write_back(self._frame, False)

    def __delitem__(self, name: str) -> None:
        del self._frame.f_locals[name]
        _write_back(self._frame, True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame.f_locals)

    def __len__(self) -> int:
        return len(self._frame.f_locals)


def _write_back(frame: FrameType, cleared: bool) -> None:
    """Before Python 3.13 `f_locals` is a copy; this puts it back into the variables, as debuggers do."""
    if not _WRITES_THROUGH:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(cleared))


class _Globals(dict[str, Any]):
    """Globals for functions that the code makes: names they lack are looked up in the function around."""

    def __init__(self, frame: FrameType, names: _Variables) -> None:
        super().__init__(__builtins__=frame.f_builtins, __name__=frame.f_globals.get("__name__"))
        self._names = names

    def __missing__(self, name: str) -> Any:
        return self._names[name]
