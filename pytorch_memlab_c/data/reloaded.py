"""Source lines of functions that IPython's `%autoreload` has put in place of those of an edited module.

It compiles each function that has changed by itself, from the text that `ast.unparse` gives: its lines count from 1
and comments are gone. That text is made again from the file, and taken if it compiles to the very code that runs.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import CodeType

_EXTENSION = "IPython.extensions.autoreload"
#: A module's own future import counts, or not.
_FUTURES = (annotations.compiler_flag, 0)
_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def reloaded_lines(code: CodeType, file_lines: Sequence[str]) -> list[str] | None:
    """The text that autoreload compiled `code` from; None if Python did from the file, or the file has changed."""
    if _EXTENSION not in sys.modules:
        return None
    try:
        tree = ast.parse("".join(file_lines))
        of_file = [compile(tree, "<file>", "exec", flags, dont_inherit=True) for flags in _FUTURES]
    except (SyntaxError, ValueError):
        return None
    if any(_is_same(code, one) for compiled in of_file for one in _codes_in(compiled)):
        return None
    for node in ast.walk(tree):
        if isinstance(node, _Definition) and _mentions(node, code.co_name):
            for text in _texts(node):
                if any(_is_same(code, one) for compiled in _compiled(text) for one in _codes_in(compiled)):
                    return text.splitlines()
    return None


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Their lines too: before Python 3.11 code objects are equal whatever the lines inside of them."""
    return code == other and list(code.co_lines()) == list(other.co_lines())


def _mentions(node: ast.AST, name: str) -> bool:
    return name.startswith("<") or any(getattr(inner, "name", None) == name for inner in ast.walk(node))


def _texts(node: ast.AST) -> Iterator[str]:
    """A function or class by itself and, as methods are compiled, a function inside a class."""
    text = ast.unparse(node)
    yield text
    if not isinstance(node, ast.ClassDef):
        yield "class __autoreload_class__:\n" + textwrap.indent(text, "    ")


def _compiled(text: str) -> Iterator[CodeType]:
    """As autoreload compiles it.

    What is new in a module, where its own future import counts; what has changed; and that without its decorators.
    """
    tree = ast.parse(text)
    for flags in _FUTURES:
        yield compile(tree, "<reloaded>", "exec", flags, dont_inherit=True)
    tree.body[0].decorator_list = []  # type: ignore[attr-defined]
    yield compile(tree, "<reloaded>", "exec", dont_inherit=True)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """Those inside of it. Code objects are equal whatever their file's name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)
