"""Following what autograd keeps for backward; its figures by line are in data/saved_types.py.

The engine sees each tensor at the moment when PyTorch saves it (native/saved_events.h). PyTorch is not imported here.
"""

from __future__ import annotations

import itertools
from typing import Any

from .. import _native
from .torch_import import after_torch_import

#: Decorated functions count a storage once among them, each `LineProfiler` for itself.
DECORATORS = 1
_groups = itertools.count(DECORATORS + 1)
_SAMPLE_BYTES = (1_048_583, 12_347, 1)
_followed: bool | None = None


def new_group() -> int:
    """A group of profilers in which a storage counts once."""
    return next(_groups)


def follow(torch: Any | None) -> None:
    """Follow what autograd saves from now on, or from PyTorch's import on."""
    global _followed
    if torch is None:
        after_torch_import(follow)
    elif _followed is None:
        _followed = _connect(torch)
        _native.saved_follow(_followed)


def is_followed() -> bool:
    """Whether it can be seen here; True before PyTorch is imported."""
    return _followed is not False


def _connect(torch: Any) -> bool:
    """False where PyTorch's objects are not laid out as the engine can find out, or its libraries are others."""
    with torch._C.DisableTorchFunctionSubclass(), torch.utils._python_dispatch._disable_current_modes():
        tensors = [torch.empty(size, dtype=torch.uint8, device="cpu") for size in _SAMPLE_BYTES]
        samples = tuple(_sample(tensor) for tensor in tensors)
        connected: bool = _native.saved_connect(samples, torch._C.TensorBase, torch._C.DisableTorchFunctionSubclass)
    return connected and _hooks_are_seen(torch)


def _sample(tensor: Any) -> tuple[int, int, int, int]:
    storage = tensor.untyped_storage()
    return tensor._cdata, storage._cdata, storage.data_ptr(), storage.nbytes()


def _hooks_are_seen(torch: Any) -> bool:
    """Whether the engine tells hooks from none, as Python does."""
    if _native.saved_hooks_are_set():  # the program's own, if any, are there too
        return True
    try:
        torch._C._autograd._push_saved_tensors_default_hooks(_same, _same)
    except RuntimeError:  # a transform of torch.func forbids hooks here: there are none
        return True
    try:
        return _native.saved_hooks_are_set()
    finally:
        torch._C._autograd._pop_saved_tensors_default_hooks()


def _same(tensor: Any) -> Any:
    return tensor
