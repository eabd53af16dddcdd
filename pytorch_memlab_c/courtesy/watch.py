"""The guard for versions of PyTorch that cannot forbid access to a storage's data.

It is a dispatch mode that looks at each operation.
"""

from __future__ import annotations

import threading
from typing import Any

_keys: set[int] = set()
_local = threading.local()
_make: Any = None


def add(key: int) -> None:
    """Watch the storage with this `_cdata`."""
    _keys.add(key)


def discard(key: int) -> None:
    """The storage has its bytes again."""
    _keys.discard(key)


def adjust(torch: Any, message: str) -> None:
    """Begin watching on this thread while there is something to watch, and end it afterwards.

    Below other modes it cannot begin, or end, without disturbing their order; then it stays out, or stays without
    effect.
    """
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    top: Any = _get_current_dispatch_mode()
    mine: Any = getattr(_local, "mode", None)
    if _keys and mine is None and top is None:
        _local.mode = _mode_class(torch, message)()
        _local.mode.__enter__()
    elif not _keys and mine is not None and top is mine:
        mine.__exit__(None, None, None)
        _local.mode = None


def _mode_class(torch: Any, message: str) -> Any:
    global _make
    if _make is not None:
        return _make
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten

    class LentMemoryWatch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if _keys and any(_is_lent(torch, leaf) for leaf in tree_flatten((args, kwargs or {}))[0]):
                raise RuntimeError(message)
            return func(*args, **(kwargs or {}))

    _make = LentMemoryWatch
    return _make


def _is_lent(torch: Any, leaf: Any) -> bool:
    if not isinstance(leaf, torch.Tensor):
        return False
    try:
        return leaf.untyped_storage()._cdata in _keys
    except Exception:  # sparse and wrapper tensors; their parts are operands of their own
        return False
