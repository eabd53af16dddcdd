"""Which functions are under test: those of the project that the test can reach by the names in its code."""

from __future__ import annotations

import functools
import inspect
import sys
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..data.callables import LRU_CACHE
from ..line_profiler import callables

#: More than these are not looked for: they are found in the order of their distance from the test.
MOST_FUNCTIONS = 500
_CALLABLES = (
    *(FunctionType, MethodType, classmethod, staticmethod, property),
    *(functools.partial, functools.partialmethod, functools.cached_property, LRU_CACHE),
)


class Project:
    """The user's own code: files below `roots` that are neither installed packages nor Python's own."""

    def __init__(self, *roots: Path) -> None:
        self._roots = {root.resolve() for root in roots}
        self._others = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
        self._known: dict[str, bool] = {}

    def owns(self, filename: str) -> bool:
        """Whether the file is the user's own code."""
        if filename not in self._known:
            self._known[filename] = self._is_own(Path(filename))
        return self._known[filename]

    def _is_own(self, path: Path) -> bool:
        if not path.is_absolute():  # <string>, <ipython-input>
            return False
        path = path.resolve()
        if {"site-packages", "dist-packages"} & set(path.parts) or self._others & set(path.parents):
            return False
        return not self._roots.isdisjoint(path.parents)


def functions_under_test(
    test: FunctionType, arguments: Mapping[str, Any], instance: Any, project: Project
) -> list[FunctionType]:
    """The test's function, then what it calls from the project, the closest first, as far as names show.

    Followed are the global names in a function's code, what it closes over, attributes of modules, the methods of
    classes and of objects; for the test also its fixtures (`arguments`), with the submodules of a torch.nn.Module,
    and methods of its own class (`instance`) that it names. A function that is only a value at run time is not found.
    """
    found = {test.__code__: test}
    waiting = deque(_reached_by(test, arguments, instance, project))
    seen: dict[int, Any] = {}  # keeps what it has seen alive: ids stay distinct
    while waiting and len(found) < MOST_FUNCTIONS:
        thing = waiting.popleft()
        if not _is_a(thing, (*_CALLABLES, type, ModuleType)):
            thing = type(thing)  # many objects are of few classes
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        for function in _functions_in(thing, project):
            if function.__code__ not in found and project.owns(function.__code__.co_filename):
                found[function.__code__] = function
                waiting.extend(_named_by(function, {}))
    return list(found.values())


def _reached_by(test: FunctionType, arguments: Mapping[str, Any], instance: Any, project: Project) -> Iterator[Any]:
    yield from _named_by(test, arguments)
    if instance is not None:
        yield from _attributes(type(instance), _names(test.__code__))
    for value in arguments.values():
        yield value
        yield from _submodules(value)


def _named_by(function: FunctionType, arguments: Mapping[str, Any]) -> Iterator[Any]:
    """What the names in a function's code refer to, and their attributes that it names."""
    names = _names(function.__code__)
    roots = [function.__globals__[name] for name in names if name in function.__globals__]
    roots += [value for cell in function.__closure__ or () for value in _content(cell)]
    yield from roots
    for root in (*roots, *arguments.values()):
        yield from _attributes(root, names)


def _names(code: CodeType) -> list[str]:
    """Names in the code and in the code nested in it, in their order."""
    nested = (name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const))
    return list(dict.fromkeys((*code.co_names, *nested)))


def _content(cell: Any) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not assigned yet
        return []


def _attributes(root: Any, names: Iterable[str]) -> Iterator[Any]:
    """Without running a property or `__getattr__`."""
    if _is_a(root, ModuleType):
        namespace = object.__getattribute__(root, "__dict__")
        yield from (namespace[name] for name in names if name in namespace)
    elif _is_a(root, type):
        found = (inspect.getattr_static(root, name, None) for name in names)
        yield from (value for value in found if value is not None)


def _is_a(thing: Any, kinds: type | tuple[type, ...]) -> bool:
    """Not isinstance: that would ask lazy objects and proxies for the object that they represent."""
    return issubclass(type(thing), kinds)


def _functions_in(thing: Any, project: Project) -> Iterator[FunctionType]:
    """The functions of a callable; of a class, the methods that the project defines."""
    if _is_a(thing, _CALLABLES):
        yield from callables.functions_if_any(thing)
    elif not _is_a(thing, ModuleType):
        for cls in thing.__mro__:
            if _is_defined_in(cls, project):
                for value in list(vars(cls).values()):
                    yield from callables.functions_if_any(value) if _is_a(value, _CALLABLES) else ()


def _is_defined_in(cls: type, project: Project) -> bool:
    module = sys.modules.get(cls.__module__)
    filename = vars(module).get("__file__") if _is_a(module, ModuleType) else None
    return isinstance(filename, str) and project.owns(filename)


def _submodules(value: Any) -> Iterator[Any]:
    torch = sys.modules.get("torch")
    if torch is not None and _is_a(value, torch.nn.Module):
        yield from torch.nn.Module.modules(value)
