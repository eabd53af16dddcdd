"""`keepers`: what holds a tensor's memory, in words."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

from .._native import Storage
from ..engine import following
from ..tensors.census import Census
from ..tensors.reading import is_tensor, quietly, storage_key
from .search import MOST_WAYS, Search


def keepers(tensor: Any) -> list[str]:
    """What keeps a tensor's storage alive: one line for each chain of Python objects that holds it, the shortest first.

    A line goes from what holds the tensor to a root: a variable of a function that runs, a global variable, an
    exception, `Out[4]` of a notebook::

        Meter.values[1489] <- meter, local of train at train.py:31
        saved by MulBackward0 in the graph of: loss, global of train.py

    Views, gradients and autograd graphs that hold the same storage count as well. At most 8 lines are given for each
    tensor. Where there is no chain, one line says so. Nothing is kept alive, and no code
    of the program runs: no `repr`, no attribute lookup. The time grows with the number of objects in the process: about
    0.2 seconds for a million.

    Raises:
        TypeError: it is no tensor.
    """
    torch = following.torch_module()
    if torch is None or not is_tensor(torch, tensor):
        raise TypeError(f"keepers() needs a tensor, not {type(tensor).__name__}")
    with census_of_now(torch) as census:
        storage = _storage_of(torch, census, tensor)
        return _lines(Search(torch, census, [storage], MOST_WAYS, True), storage)


def _lines(search: Search, storage: Storage) -> list[str]:
    lines = dict.fromkeys(search.line(way) for way in search.ways(storage))
    return list(lines) or [search.nobody(storage)]


def _storage_of(torch: Any, census: Census, tensor: Any) -> Storage:
    """The storage of a tensor; for one that has none, what stands for it."""
    key = storage_key(torch, tensor)
    return census.storages.get(key) or Storage(key, 0, 0, tensor)


@contextlib.contextmanager
def census_of_now(torch: Any) -> Iterator[Census]:
    """All live tensors, for the time of the block, in which nothing of the program runs."""
    with no_collection(), quietly(torch):
        census = Census(torch)
        census.take()
        yield census


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """A collection in the middle would run the program's code, and change what is counted."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
