"""Top-level `await` in the code of `%mlrun`: the call of the magic is awaited, as the code itself would be."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

from .options import split

_CALLS = ("run_line_magic", "run_cell_magic")


class _AwaitMagic:
    """A transformer of whole cells, after the shell's own have made calls of the magics in them."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        text = "".join(lines)
        if "'mlrun'" not in text or not self._shell.autoawait:
            return lines
        try:
            places = [(call.lineno - 1, call.col_offset) for call in self._calls(ast.parse(text)) if self._awaits(call)]
        except (SyntaxError, ValueError):  # the shell will say what is wrong
            return lines
        for row, column in reversed(places):
            line = lines[row].encode()  # offsets of the syntax tree count bytes
            lines[row] = (line[:column] + b"await " + line[column:]).decode()
        return lines

    def _calls(self, tree: ast.AST) -> Iterator[ast.Call]:
        """The calls of this magic as the shell writes them, in the order of the text."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
                values = [value.value for value in node.args if isinstance(value, ast.Constant)]
                if values[:1] == ["mlrun"] and len(values) == len(node.args):
                    yield node

    def _awaits(self, call: ast.Call) -> bool:
        line, *cell = [str(value.value) for value in call.args[1:] if isinstance(value, ast.Constant)]
        parser = self._shell.magics_manager.registry["MlrunMagics"].mlrun.parser
        try:
            code = cell[0] if cell else split(parser, line)[1]
            transformed = self._shell.input_transformer_manager.transform_cell(code)
            flags = self._shell.compile.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compiled = compile(transformed, "<cell>", "exec", flags, dont_inherit=True)
        except Exception:  # it is said when the code runs
            return False
        return bool(compiled.co_flags & inspect.CO_COROUTINE)


def install(shell: Any) -> None:
    shell.input_transformers_post.append(_AwaitMagic(shell))


def remove(shell: Any) -> None:
    transformers = shell.input_transformers_post
    transformers[:] = [one for one in transformers if not isinstance(one, _AwaitMagic)]
