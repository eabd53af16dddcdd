"""Callbacks for when the program imports PyTorch; this package never imports it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from .module_watch import ModuleWatch

Callback = Callable[[ModuleType], None]
_callbacks: list[Callback] = []


def after_torch_import(callback: Callback) -> None:
    """Call `callback(torch)` right after `import torch` has run; callbacks run in the order given.

    It has no effect on a PyTorch that is imported already.
    """
    _callbacks.append(callback)
    _watch.start()


def _torch_executed(torch: ModuleType) -> None:
    _watch.stop()
    while _callbacks:
        _callbacks.pop(0)(torch)


#: It stays until torch is imported: programs also look for torch without importing it.
_watch = ModuleWatch(lambda name: name == "torch", _torch_executed)
