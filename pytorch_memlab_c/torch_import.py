"""Being told when the program imports PyTorch, which this package never imports of itself."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]
_callbacks: list[Callback] = []


def after_torch_import(callback: Callback) -> None:
    """Call `callback(torch)` right after `import torch` has run; callbacks run in the order given.

    It has no effect on a PyTorch that is imported already.
    """
    _callbacks.append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _TorchFinder:
    """A finder that leaves finding to the others. It stays until torch is imported: programs also look for torch without
    importing it."""

    def __init__(self) -> None:
        self._asking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch" or getattr(self._asking, "others", False):
            return None
        self._asking.others = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.others = False
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        # The loader belongs to this spec alone. Wrapping its method keeps its type for whoever inspects it.
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            while _callbacks:
                _callbacks.pop(0)(module)

        loader.exec_module = exec_module


_finder = _TorchFinder()
