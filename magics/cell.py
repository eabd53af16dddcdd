"""The code of a cell: compiled as one code object, whose lines are those the user sees in the cell."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .options import Options

#: The variable that takes the value of the last expression, until the run is over.
VALUE = "_mlrun_value"


@dataclass(frozen=True)
class Cell:
    """The code of one call of the magic.

    `functions` are those that the code defines, as (qualified name, code object); `classes` their names; `binds` the
    other names it gives a value, with the dotted path of what it imports; `source` its lines as the user wrote them;
    `shows` whether the value of its last expression is the result.
    """

    code: CodeType
    title: str
    source: tuple[int, list[str]]
    functions: tuple[tuple[str, CodeType], ...]
    classes: frozenset[str]
    binds: dict[str, str | None]
    shows: bool

    @property
    def awaits(self) -> bool:
        """Whether the code is a coroutine, to be awaited."""
        return bool(self.code.co_flags & inspect.CO_COROUTINE)


def compile_cell(shell: Any, options: Options) -> Cell:
    """Compile as the shell would: with its transformations, its `__future__` flags and its names of cells.

    Raises `SyntaxError` and what the shell's transformers raise.
    """
    transformed = shell.transform_cell(options.body)
    text = _placed(options, transformed)
    filename = shell.compile.cache(text, _number(shell), raw_code=text)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=filename))
    shows = _keep_last_value(shell, tree) and not shell.displayhook.semicolon_at_end_of_expression(transformed)
    with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0):
        code = shell.compile(tree, filename, "exec")
    title = " ".join(shell.compile.format_code_name(filename) or ("%mlrun",))
    shown = (1, _shown_lines(options, text))
    classes = frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return Cell(code, title, shown, tuple(_functions(code, "")), classes, dict(_bound_names(tree)), shows)


def _placed(options: Options, transformed: str) -> str:
    """The code at the line numbers it has in the cell.

    They are below the magic's line, and below empty lines, which the shell's transformations take away.
    """
    if options.heading is None:
        return transformed
    lines = options.body.split("\n")
    empty = next((i for i, line in enumerate(lines) if line.strip()), 0)
    return f"# {options.heading}\n" + "\n" * empty + transformed


def _shown_lines(options: Options, text: str) -> list[str]:
    """What the user wrote, unless the shell made more or fewer lines of it."""
    heading = [] if options.heading is None else [options.heading]
    own = heading + options.body.rstrip("\n").split("\n")
    ran = heading + text.rstrip("\n").split("\n")[len(heading) :]
    return own if len(own) == len(ran) else ran


def _number(shell: Any) -> int:
    """The number of the cell that runs: the shell's own count is one ahead of it already."""
    running = getattr(shell.displayhook.exec_result, "execution_count", None)
    number: int = shell.execution_count if running is None else running
    return number


def _keep_last_value(shell: Any, tree: ast.Module) -> bool:
    """Put the value of the last expression into a variable; whether there is one that the shell would show."""
    if not tree.body or shell.ast_node_interactivity == "none":
        return False
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        target = ast.Name(VALUE, ast.Store())
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(ast.Assign([target], last.value), last))
        return True
    if isinstance(last, ast.Assign) and shell.ast_node_interactivity == "last_expr_or_assign":
        last.targets.append(ast.copy_location(ast.Name(VALUE, ast.Store()), last))
        return True
    return False


def _functions(code: CodeType, prefix: str) -> Iterator[tuple[str, CodeType]]:
    """Functions and methods at any depth; bodies of classes, lambdas and comprehensions are lines of what is around."""
    for inner in code.co_consts:
        if not isinstance(inner, CodeType):
            continue
        if inner.co_name.startswith("<"):
            yield from _functions(inner, prefix)
        elif inner.co_flags & inspect.CO_OPTIMIZED:
            yield prefix + inner.co_name, inner
            yield from _functions(inner, f"{prefix}{inner.co_name}.<locals>.")
        else:
            yield from _functions(inner, f"{prefix}{inner.co_name}.")


def _bound_names(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, None
        elif isinstance(node, ast.Import):
            yield from (_imported(alias) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _imported(alias: ast.alias) -> tuple[str, str]:
    first = alias.name.partition(".")[0]
    return (alias.asname, alias.name) if alias.asname else (first, first)
