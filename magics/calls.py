"""The calls of `%mlrun` in the text of a cell, changed so that their code behaves as if it were written there.

A call whose code awaits is awaited. In a function, what the code assigns is declared (`name: object`), so that Python
makes it a variable of that function.
"""

from __future__ import annotations

import ast
import dis
import inspect
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from .options import split

_CALLS = ("run_line_magic", "run_cell_magic")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Statements of one line, which others may precede on it.
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)


class _Found(NamedTuple):
    """A call, its statement, and the function around it, if there is one."""

    call: ast.Call
    statement: ast.stmt
    function: ast.AST | None


class _Calls:
    """A transformer of whole cells, after the shell's own have made calls of the magics in them."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        text = "".join(lines)
        if "'mlrun'" not in text and '"mlrun"' not in text:
            return lines
        try:
            edits = [edit for found in _calls(ast.parse(text)) for edit in self._edits(found)]
        except (SyntaxError, ValueError):  # the shell will say what is wrong
            return lines
        for row, column, added in reversed(sorted(edits, key=lambda edit: edit[:2])):
            line = lines[row].encode()  # offsets of the syntax tree count bytes
            lines[row] = (line[:column] + added.encode() + line[column:]).decode()
        return lines

    def _edits(self, found: _Found) -> Iterator[tuple[int, int, str]]:
        """What to add, as (row, column, text); of several at one position, in their order."""
        call, statement, function = found
        code = self._code(call)
        if code is None:
            return
        if function is not None and isinstance(statement, _SIMPLE):
            names = sorted(_assigned(code) - _of_others(function))
            yield statement.lineno - 1, statement.col_offset, "".join(f"{name}: object; " for name in names)
        if code.co_flags & inspect.CO_COROUTINE:
            yield call.lineno - 1, call.col_offset, "await "

    def _code(self, call: ast.Call) -> CodeType | None:
        """The code of the magic, compiled; None if it cannot be."""
        line, *cell = [str(value.value) for value in call.args[1:] if isinstance(value, ast.Constant)]
        parser = self._shell.magics_manager.registry["MlrunMagics"].mlrun.parser
        try:
            text = cell[0] if cell else split(parser, line)[1]
            transformed = self._shell.input_transformer_manager.transform_cell(text)
            awaits = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if self._shell.autoawait else 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compiled: CodeType = compile(
                    transformed, "<cell>", "exec", self._shell.compile.flags | awaits, dont_inherit=True
                )
        except Exception:  # it is said when the code runs
            return None
        return compiled


def _calls(tree: ast.AST, statement: ast.stmt | None = None, function: ast.AST | None = None) -> Iterator[_Found]:
    """The calls of this magic as the shell writes them."""
    for node in ast.iter_child_nodes(tree):
        inner = node if isinstance(node, ast.stmt) else statement
        if inner is not None and isinstance(node, ast.Call) and _is_ours(node):
            yield _Found(node, inner, function)
        around = node if isinstance(node, _FUNCTIONS) else None if isinstance(node, ast.ClassDef) else function
        yield from _calls(node, inner, around)


def _is_ours(node: ast.Call) -> bool:
    values = [value.value for value in node.args if isinstance(value, ast.Constant)]
    named = isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS
    return named and values[:1] == ["mlrun"] and 1 < len(values) == len(node.args)


def _assigned(code: CodeType) -> set[str]:
    """The names that a module's code gives a value."""
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname == "STORE_NAME"} - {
        "__annotations__"
    }


def _of_others(function: ast.AST) -> set[str]:
    """Names that the function says are not its own."""
    return {name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}


def install(shell: Any) -> None:
    """Read the magic's calls in the cells of `shell` from now on."""
    shell.input_transformers_post.append(_Calls(shell))


def remove(shell: Any) -> None:
    """Undo `install`; without it nothing happens."""
    transformers = shell.input_transformers_post
    transformers[:] = [one for one in transformers if not isinstance(one, _Calls)]
