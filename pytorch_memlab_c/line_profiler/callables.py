"""The kinds of callables that can be profiled.

The code inside them is found, and a wrapper is put inside without changing their kind.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..data.callables import LRU_CACHE, parts_of

NO_CODE = "it has no Python code of its own"
COMPILED = "compiled, it has no Python lines; profile its caller"
#: Where PyTorch defines objects that Python calls and that then run compiled code.
_COMPILED_KINDS = ("torch.jit", "torch._dynamo", "torch._ops")

Wrap = Callable[[FunctionType], FunctionType]


def functions_of(target: Any) -> Iterator[FunctionType]:
    """The plain functions whose lines `target` runs, innermost of any decorators (`__wrapped__`).

    Takes functions, bound methods, classmethod, staticmethod, property, cached_property, partial, partialmethod and
    functions under lru_cache. Raises `TypeError` for anything else.
    """
    if isinstance(target, FunctionType):
        yield inspect.unwrap(target)
        return
    parts = parts_of(target)
    if not parts:
        raise TypeError(_not_a_function(target))
    for part in parts:
        yield from functions_of(part)


def functions_if_any(target: Any) -> list[FunctionType]:
    """As `functions_of`; empty where that fails: code in C, or a `__wrapped__` that leads nowhere."""
    if not isinstance(target, FunctionType) and not parts_of(target):
        return []  # at once: the message of an error would take longer
    try:
        return list(functions_of(target))
    except Exception:
        return []


def _not_a_function(target: Any) -> str:
    text = f"cannot profile {_describe(target)}: "
    if isinstance(target, type):
        return f"{text}{NO_CODE}; name the methods to profile"
    advice = _method_to_give(target)
    if not advice and not callable(target):
        advice = "give a function or method, not the result of calling it"
    return f"{text}{NO_CODE}; {advice}" if advice else text + COMPILED


def _method_to_give(target: Any) -> str:
    """What to profile in place of an object; empty where its methods are compiled, too."""
    if type(target).__module__.startswith(_COMPILED_KINDS):
        return ""
    forward = inspect.getattr_static(type(target), "forward", None)
    if forward is not None:
        return "a module is profiled by its method: give module.forward" if functions_if_any(forward) else ""
    if functions_if_any(inspect.getattr_static(type(target), "__call__", None)):
        return f"give type(obj).__call__ ({type(target).__qualname__}.__call__)"
    return ""


def _describe(target: Any) -> str:
    name = getattr(target, "__qualname__", None)
    return f"{name!r}" if isinstance(name, str) else f"an object of type {type(target).__qualname__!r}"


def rewrap(target: Any, wrap: Wrap) -> Any:
    """The same kind of object as `target`, with `wrap` applied to the functions inside it."""
    if isinstance(target, FunctionType):
        return wrap(target)
    if isinstance(target, MethodType):
        return MethodType(rewrap(target.__func__, wrap), target.__self__)
    if isinstance(target, (classmethod, staticmethod)):
        return type(target)(rewrap(target.__func__, wrap))
    if isinstance(target, property):
        return _rewrap_property(target, wrap)
    if isinstance(target, functools.cached_property):
        return _like(type(target)(rewrap(target.func, wrap)), target)
    if isinstance(target, (functools.partial, functools.partialmethod)):
        return _like(type(target)(rewrap(target.func, wrap), *target.args, **target.keywords), target)
    if isinstance(target, LRU_CACHE):
        cached = functools.lru_cache(**target.cache_parameters())(rewrap(target.__wrapped__, wrap))
        return functools.update_wrapper(cached, target)
    raise TypeError(_not_a_function(target))


def _rewrap_property(target: property, wrap: Wrap) -> property:
    if not parts_of(target):
        raise TypeError(_not_a_function(target))
    fget, fset, fdel = (part and rewrap(part, wrap) for part in (target.fget, target.fset, target.fdel))
    return type(target)(fget, fset, fdel, target.__doc__)


def _like(fresh: Any, target: Any) -> Any:
    """`fresh` with the attributes of `target` that are not the function."""
    fresh.__dict__.update({name: value for name, value in vars(target).items() if name != "func"})
    return fresh


def line_range(code: CodeType) -> tuple[int, int]:
    """First and last line that the code object has instructions for, the `def` line's included."""
    lines = [line for _, _, line in code.co_lines() if line]
    return min([*lines, code.co_firstlineno]), max([*lines, code.co_firstlineno])
