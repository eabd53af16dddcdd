"""Following what autograd keeps for backward; its figures by line are in data/saved_types.py.

The engine sees each tensor at the moment when PyTorch saves it (native/saved_events.h). PyTorch is not imported here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
    """Whether it can be measured here; True before PyTorch is imported."""
    return _followed is not False


def _connect(torch: Any) -> bool:
    """False where PyTorch's objects are not laid out as the engine can find out, or its libraries are others."""
    with torch._C.DisableTorchFunctionSubclass(), torch.utils._python_dispatch._disable_current_modes():
        tensors = [torch.empty(size, dtype=torch.uint8, device="cpu") for size in _SAMPLE_BYTES]
        samples = tuple(_sample(tensor) for tensor in tensors)
        connected: bool = _native.saved_connect(samples, torch._C.TensorBase, torch._C.DisableTorchFunctionSubclass)
    return connected and _wrappers_are_known(torch) and _hooks_are_seen(torch)


def _sample(tensor: Any) -> tuple[int, int, int, int]:
    storage = tensor.untyped_storage()
    return tensor._cdata, storage._cdata, storage.data_ptr(), storage.nbytes()


def _wrappers_are_known(torch: Any) -> bool:
    """Whether the engine finds the memory of tensors inside transforms of torch.func, which stand for others."""
    functorch, tensor = torch._C._functorch, torch.empty(1, device="cpu")
    levels: tuple[tuple[Callable[[], int], Callable[[int], Any], Callable[[], object]], ...] = (
        (
            functorch._grad_increment_nesting,
            lambda level: functorch._wrap_for_grad(tensor, level),
            functorch._grad_decrement_nesting,
        ),
        (
            lambda: functorch._vmap_increment_nesting(1, "error"),
            lambda level: functorch._add_batch_dim(tensor, 0, level),
            functorch._vmap_decrement_nesting,
        ),
    )
    functional = torch._to_functional_tensor(tensor)
    return all(_learn_wrapper(functorch.get_unwrapped, *level) for level in levels) and _native.saved_learn_wrapper(
        functional._cdata, torch._from_functional_tensor(functional)._cdata
    )


def _learn_wrapper(
    unwrap: Callable[[Any], Any], enter: Callable[[], int], wrap: Callable[[int], Any], leave: Callable[[], object]
) -> bool:
    level = enter()
    try:
        wrapped = wrap(level)
        return _native.saved_learn_wrapper(wrapped._cdata, unwrap(wrapped)._cdata)
    finally:
        leave()


def _hooks_are_seen(torch: Any) -> bool:
    """Whether the engine sees whether hooks are set, as Python does."""
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
