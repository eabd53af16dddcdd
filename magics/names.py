"""From the names behind `-f` to what is profiled; without `-f`, the code itself and the functions it defines."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from IPython.core.error import UsageError

from pytorch_memlab_c.data.hints import similar
from pytorch_memlab_c.line_profiler import LineProfiler

from .cell import Cell
from .scope import Scope


def add_functions(profiler: LineProfiler, names: tuple[str, ...], cell: Cell, scope: Scope) -> None:
    """Have the profiler measure the functions named; raises `UsageError` for a name that is none of a function."""
    module = scope.globals["__name__"] if "__name__" in scope.globals else None
    if not names:
        profiler.add_code(cell.code, cell.title, None, cell.source)
    for qualname, code in cell.functions:
        if not names or any(_means(name, qualname) for name in names):
            profiler.add_code(code, qualname, module)
    for name in names:
        if not any(_means(name, qualname) for qualname, _ in cell.functions):
            _add_object(profiler, name, cell, scope)


def _means(name: str, qualname: str) -> bool:
    return name in (qualname, qualname.replace(".<locals>", ""))


def _add_object(profiler: LineProfiler, name: str, cell: Cell, scope: Scope) -> None:
    _check_form(name)
    function = _look_up(name, cell, scope)
    if isinstance(function, type):
        raise UsageError(
            _is_a_class(name, [n for n, value in vars(function).items() if isinstance(value, FunctionType)])
        )
    if isinstance(function, ModuleType):
        raise UsageError(f"-f {name} is a module: name one of its functions, as in -f {name}.function")
    try:
        profiler.add_function(function)
    except TypeError as error:
        raise UsageError(f"-f {name}: {error}") from None


def _check_form(name: str) -> None:
    try:
        tree = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError):
        raise UsageError(f"-f {name!r} is not the name of a function; write it like {_EXAMPLES}") from None
    if isinstance(tree, ast.Call):
        raise UsageError(f"-f {name} is a call; name the function without calling it: -f {ast.unparse(tree.func)}")
    if isinstance(tree, ast.Tuple):
        each = " ".join(f"-f {ast.unparse(item)}" for item in tree.elts)
        raise UsageError(f"-f {name} names several functions; give each its own -f: {each}")
    if not isinstance(tree, (ast.Name, ast.Attribute, ast.Subscript)):
        raise UsageError(f"-f {name} is not the name of a function; write it like {_EXAMPLES}")


_EXAMPLES = "-f f, -f Net.forward or -f package.module.f"


def _look_up(name: str, cell: Cell, scope: Scope) -> Any:
    """The object of that name: in the scope, or in a module, imported if need be."""
    first, rest = _split(name)
    _check_defined_here(name, first, cell, scope)
    try:
        return eval(name, scope.globals, scope.locals)
    except NameError:
        pass
    except AttributeError:
        raise UsageError(_not_found(name, cell, scope)) from None
    except Exception as error:
        raise UsageError(f"-f {name}: {_one_line(error)}") from None
    path = cell.binds.get(first, first)
    if path is None:
        raise UsageError(
            f"-f {name}: {first!r} gets its value only while this code runs; give it that in an earlier cell, or name "
            "what this code defines with def (f, Net.forward)"
        )
    try:
        return _import(path + rest)
    except Exception as error:
        absent = isinstance(error, AttributeError) or getattr(error, "name", None) in _prefixes(path + rest)
        why = _not_found(name, cell, scope) if absent else f"-f {name} cannot be imported: {_one_line(error)}"
        raise UsageError(why) from None


def _split(name: str) -> tuple[str, str]:
    """The first name, and what follows it: `.forward`, `[0].forward`."""
    found = re.match(r"\s*(\w+)(.*)", name)
    return (found[1], found[2]) if found else (name, "")


def _check_defined_here(name: str, first: str, cell: Cell, scope: Scope) -> None:
    """A class that the code defines is none yet; its methods would have been found among the functions."""
    if first not in cell.classes:
        return
    methods = [q.partition(".")[2] for q, _ in cell.functions if q.startswith(f"{first}.") and "<" not in q]
    if name == first:
        raise UsageError(_is_a_class(name, methods))
    if similar(name, [f"{first}.{method}" for method in methods]):
        raise UsageError(_not_found(name, cell, scope))
    raise UsageError(
        f"-f {name}: this code gives {first} no such method of its own; name the class that it is from, or define "
        f"{first} in an earlier cell"
    )


def _import(name: str) -> Any:
    """The object at a dotted path, whose first parts are a module.

    Raises what the import does, and `AttributeError`.
    """
    path, *attributes = name.split(".")
    found: Any = importlib.import_module(path)
    for attribute in attributes:
        path = f"{path}.{attribute}"
        if not hasattr(found, attribute) and isinstance(found, ModuleType):
            importlib.import_module(path)
        found = getattr(found, attribute)
    return found


def _prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _is_a_class(name: str, methods: list[str]) -> str:
    some = " ".join(f"-f {name}.{method}" for method in methods[:3]) or f"-f {name}.method"
    return f"-f {name} is a class: name the methods to profile, as in {some}"


def _not_found(name: str, cell: Cell, scope: Scope) -> str:
    known = [qualname for qualname, _ in cell.functions] + list(_known_names(scope))
    found = similar(name, known)[:2]
    hint = f"did you mean -f {' or -f '.join(found)}? Otherwise " if found else ""
    return f"-f {name}: there is no function of that name; {hint}write it like {_EXAMPLES}"


def _known_names(scope: Scope) -> Iterator[str]:
    for name, value in list(scope.locals.items()):
        if isinstance(value, FunctionType):
            yield name
        elif isinstance(value, type):
            yield from (f"{name}.{method}" for method, of in vars(value).items() if isinstance(of, FunctionType))
