"""Functions found in modules that have been executed.

Nothing here runs code of theirs: no module's `__getattr__`, no descriptor.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import BuiltinImporter, ExtensionFileLoader
from types import FunctionType, ModuleType
from typing import Any

from ..data.callables import LRU_CACHE
from ..line_profiler import callables

_HOLDERS = (FunctionType, classmethod, staticmethod, property, functools.cached_property, functools.partialmethod)


def look_up(name: str) -> list[FunctionType]:
    """The plain functions behind a full name, `package.module.Class.method`.

    Raises `LookupError` if no module that has been imported has it, `TypeError` for what cannot be profiled.
    """
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if isinstance(module, ModuleType):
            found = _follow(module, parts[length:])
            return list(callables.functions_of(found))
    raise LookupError(name)


def _follow(module: ModuleType, names: list[str]) -> Any:
    found: Any = module
    for name in names:
        try:
            found = _namespace(found)[name] if isinstance(found, ModuleType) else inspect.getattr_static(found, name)
        except (AttributeError, KeyError):
            if found is module and _is_lazy(module):
                return _follow(_submodule_with(module, names), names)
            raise LookupError(name) from None
    return found


def _namespace(module: ModuleType) -> dict[str, Any]:
    namespace: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return namespace


def _is_lazy(module: ModuleType) -> bool:
    """Whether its names are created when they are first looked up."""
    return type(module) is not ModuleType or "__getattr__" in _namespace(module)


def _submodule_with(package: ModuleType, names: list[str]) -> ModuleType:
    """The module in a lazy package that defines what the package will show."""
    for name, module in list(sys.modules.items()):
        if name.startswith(package.__name__ + ".") and isinstance(module, ModuleType) and not _is_lazy(module):
            found = _namespace(module).get(names[0])
            if isinstance(found, (type, FunctionType)) and found.__module__ == name:
                return module
    raise LookupError(names[0])


def is_compiled(module: ModuleType) -> bool:
    """Whether it is an extension module or one that is built into Python."""
    loader = getattr(_namespace(module).get("__spec__"), "loader", None)
    return loader is BuiltinImporter or isinstance(loader, ExtensionFileLoader)


def functions_of_module(module: ModuleType) -> Iterator[FunctionType]:
    """The functions, and methods of classes, that a module itself defines; decorated ones by their `__wrapped__`."""
    yield from _functions_in(_namespace(module), module.__name__, "")


def _functions_in(namespace: Mapping[str, Any], module: str, prefix: str) -> Iterator[FunctionType]:
    for value in list(namespace.values()):
        if isinstance(value, type):
            if (value.__module__, value.__qualname__) == (module, prefix + value.__name__):
                yield from _functions_in(vars(value), module, f"{value.__qualname__}.")
        elif isinstance(value, (*_HOLDERS, LRU_CACHE)):
            yield from (plain for plain in callables.functions_if_any(value) if plain.__module__ == module)
