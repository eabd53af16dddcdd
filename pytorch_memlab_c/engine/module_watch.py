"""Callbacks for modules as the program imports them: with the code before it runs, and with the module afterwards.

A watch is a finder that leaves finding to the others, and listens at the loader that they give. What it adds to a
loader is removed again when the module runs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

#: Python takes importlib's own frames out of the traceback of a failed import, by this name. Ours are to go with them.
_FILENAME = "<frozen importlib._bootstrap_external>"
_SOURCE = """
def make_exec_module(execute, before, after):
    def exec_module(module):
        before(module)
        execute(module)
        after(module)
    return exec_module

def make_get_code(get, report):
    def get_code(fullname=None):
        code = get(fullname)
        report(code)
        return code
    return get_code
"""
_makers: dict[str, Any] = {}
exec(compile(_SOURCE, _FILENAME, "exec"), _makers)


class ModuleWatch:
    """Callbacks for modules whose name is `wanted`.

    `code(name, code)` is called before a module's code runs, where its loader has code to show, and `executed(module)`
    right after it has run.
    """

    def __init__(
        self,
        wanted: Callable[[str], bool],
        executed: Callable[[ModuleType], None],
        code: Callable[[str, CodeType], None] | None = None,
    ) -> None:
        self._wanted = wanted
        self._executed = executed
        self._code = code
        self._asking = threading.local()

    def start(self) -> None:
        """Listen to imports from now on."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Watch no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The other finders' answer. One of them may ask all finders in turn, this one too."""
        self._stay_in_front()
        asked = self._asking.__dict__.setdefault("names", set())
        if name in asked or not self._wanted(name):
            return None
        asked.add(name)
        try:
            spec = self._ask_others(name, path, target)
        finally:
            asked.discard(name)
        if spec is not None and spec.loader is not None:
            self._listen(name, spec.loader)
        return spec

    def _stay_in_front(self) -> None:
        """Of finders that the program has added since (pytest's, say): what they answer is not asked of others."""
        if not isinstance(sys.meta_path[0], ModuleWatch) and self in sys.meta_path:
            sys.meta_path.remove(self)
            sys.meta_path.insert(0, self)

    def _ask_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                return spec
        return None

    def _listen(self, name: str, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type) or not hasattr(loader, "__dict__"):
            return  # a loader that all modules of its kind share, or one that takes no attribute
        earlier = vars(loader).get("exec_module")

        def before(module: ModuleType) -> None:
            if module.__name__ == name:
                _put_back(loader, "exec_module", earlier)
                self._listen_for_code(name, loader)

        def after(module: ModuleType) -> None:
            if module.__name__ == name:
                self._executed(module)

        loader.exec_module = _makers["make_exec_module"](execute, before, after)

    def _listen_for_code(self, name: str, loader: Any) -> None:
        """A loader of Python source asks itself for the module's code, and runs that very object."""
        get = getattr(loader, "get_code", None)
        callback = self._code
        if get is None or callback is None:
            return
        earlier = vars(loader).get("get_code")

        def report(code: CodeType | None) -> None:
            _put_back(loader, "get_code", earlier)
            if code is not None:
                callback(name, code)

        loader.get_code = _makers["make_get_code"](get, report)


def _put_back(loader: Any, method: str, earlier: Any) -> None:
    if earlier is not None:
        setattr(loader, method, earlier)
    else:
        with contextlib.suppress(AttributeError):
            delattr(loader, method)
