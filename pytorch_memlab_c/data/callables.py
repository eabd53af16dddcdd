"""What is inside a callable, one step in. Shared by finding the functions to profile and those to show."""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any

LRU_CACHE = type(functools.lru_cache(lambda: None))


def parts_of(target: Any) -> list[Any]:
    """The callables inside `target`, one step in; empty if it is not one of these kinds.

    Kinds: property, classmethod, staticmethod, bound method, partial, partialmethod, cached_property, lru_cache.
    """
    if isinstance(target, property):
        return [part for part in (target.fget, target.fset, target.fdel) if part is not None]
    if isinstance(target, (classmethod, staticmethod, MethodType)):
        return [target.__func__]
    if isinstance(target, (functools.partial, functools.partialmethod, functools.cached_property)):
        return [target.func]
    if isinstance(target, LRU_CACHE):
        return [target.__wrapped__]
    return []
