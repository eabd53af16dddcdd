"""Emptying a storage so that any later access to its data is a Python error, and filling it again.

PyTorch can forbid access to one storage's data (its CUDA graphs use it): the check is in C++, where each operation
asks for the pointer, so it covers all threads, autograd and printing. The emptied storage keeps its size, so views of
it can still be made. Versions without that get a storage of size 0, and the mode of watch.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import watch

MESSAGE = (
    "the memory of this tensor is lent: pytorch_memlab_c.Courtesy has moved its data to the host. "
    "Call restore() of that Courtesy object (or leave its `with` block) before using the tensor."
)
_NEEDED = ("_construct_storage_from_data_pointer", "_set_storage_data_ptr_access_error_msg")


def is_native(torch: Any) -> bool:
    """Whether this PyTorch can forbid the access itself."""
    return all(hasattr(torch._C, name) for name in _NEEDED) and hasattr(torch._C.StorageBase, "_swap_data_ptr_")


def empty(torch: Any, storage: Any) -> None:
    """Free a storage's bytes and forbid access to them."""
    if not is_native(torch):
        watch.add(storage._cdata)
        storage.resize_(0)
        return
    hollow = torch._C._construct_storage_from_data_pointer(0, storage.device, storage.nbytes())
    _forbid(torch, hollow)
    storage._swap_data_ptr_(hollow)  # with its ban, which thus is there from the first moment
    _forbid(torch, storage)  # the message does not travel with it


def fill(torch: Any, storage: Any, allocate: Callable[[Any], Any], copy: Callable[[Any], None]) -> None:
    """Give a storage bytes again, and allow access.

    `allocate(None)` returns a new storage of its size, `allocate(storage)` gives that one the bytes; `copy(storage)`
    fills it.
    """
    if not is_native(torch):
        copy(allocate(storage))
        watch.discard(storage._cdata)
        return
    fresh = allocate(None)
    copy(fresh)
    storage._swap_data_ptr_(fresh)  # complete when it becomes visible
    clear = getattr(torch._C, "_clear_storage_data_ptr_access_error_msg", None)
    if clear is not None:
        clear(storage._cdata)


def forget(key: int) -> None:
    """The storage with this `_cdata` was freed; another one may get its address."""
    watch.discard(key)


def adjust(torch: Any) -> None:
    """To be called on the program's thread, in its modes, after storages were emptied or filled."""
    if not is_native(torch):
        watch.adjust(torch, MESSAGE)


def _forbid(torch: Any, storage: Any) -> None:
    torch._C._set_storage_data_ptr_access_error_msg(storage._cdata, MESSAGE)
