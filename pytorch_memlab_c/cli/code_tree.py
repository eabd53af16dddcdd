"""The functions that a module's code defines.

They are found in the code itself: before any of it runs, and whatever decorators make of them.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import warnings
from collections.abc import Iterator
from types import CodeType


def functions_in(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """Qualname and code of each `def`, `async def` and `lambda` in `code`, those inside classes and functions too."""
    for inner in _inner_codes(code):
        if inner.co_name.startswith("<generic parameters of "):  # Python 3.12: `def f[T]()`
            yield from functions_in(inner, prefix)
        elif inner.co_name == "<lambda>" or not inner.co_name.startswith("<"):
            qualname: str = getattr(inner, "co_qualname", prefix + inner.co_name)
            is_function = bool(inner.co_flags & inspect.CO_OPTIMIZED)
            if is_function:
                yield qualname, inner
            yield from functions_in(inner, qualname + (".<locals>." if is_function else "."))


def names_in(code: CodeType) -> set[str]:
    """All global names and attributes that the code and the code within it mention."""
    return set(code.co_names).union(*map(names_in, _inner_codes(code)))


def _inner_codes(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


class Imports:
    """The names that a module's source imports: `names` maps each to the full name that it refers to."""

    def __init__(self, source: str | bytes | None, package: str | None) -> None:
        self.names: dict[str, str] = {}
        self.has_star = source is None  # without a source, anything may be imported
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compiling it has shown them
            tree = ast.parse(source or "")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.names.update({alias.asname: alias.name for alias in node.names if alias.asname})
            elif isinstance(node, ast.ImportFrom):
                self._add_from(node, package)

    def _add_from(self, node: ast.ImportFrom, package: str | None) -> None:
        module = "." * node.level + (node.module or "")
        if node.level:
            if not package:
                return
            module = importlib.util.resolve_name(module, package)
        for alias in node.names:
            if alias.name == "*":
                self.has_star = True
            else:
                self.names[alias.asname or alias.name] = f"{module}.{alias.name}"

    def full_name(self, name: str) -> str:
        """The name with its first part replaced by the name that it refers to."""
        first, dot, rest = name.partition(".")
        return self.names.get(first, first) + dot + rest
