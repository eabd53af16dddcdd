"""Completion of the values of `-f` and `-c`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from pytorch_memlab_c.data import columns
from pytorch_memlab_c.line_profiler import callables

_IDENTIFIER = "pytorch_memlab_c.mlrun"
_VALUE = re.compile(r"%%?mlrun(?:\s.*)?\s(-f|--function|-c|--column)(?:\s+|=)(\S*)$")
_HEADER = re.compile(r"(\s*)(?:async\s+)?(def|class)\s+(\w+)")


def install(shell: Any) -> None:
    """Complete the names behind `-f` and `-c`."""

    @context_matcher(identifier=_IDENTIFIER)
    def match(context: CompletionContext) -> SimpleMatcherResult:
        return _match(context, shell.user_ns)

    shell.Completer.custom_matchers.append(match)


def remove(shell: Any) -> None:
    """Undo `install`; without it nothing happens."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if getattr(one, "matcher_identifier", None) != _IDENTIFIER]


def _match(context: CompletionContext, namespace: dict[str, Any]) -> SimpleMatcherResult:
    found = _VALUE.search(context.text_until_cursor)
    if found is None:
        return {"completions": []}
    option, start = found.groups()
    if option in ("-c", "--column"):
        names = list(columns.valid_columns())
    else:
        names = [*_defined_in(context.full_text), *_known(start, namespace)]
    cut = len(start) - len(context.token)  # the shell replaces its token, which may be shorter
    fitting = dict.fromkeys(name[cut:] for name in names if name.startswith(start))
    return {"completions": [SimpleCompletion(name, type="text") for name in fitting], "suppress": True}


def _defined_in(text: str) -> Iterator[str]:
    """Functions and methods of a cell that is being written, and may not be Python yet."""
    around: list[tuple[int, str]] = []
    for header in filter(None, map(_HEADER.match, text.splitlines())):
        indent, keyword, name = len(header[1]), header[2], header[3]
        around = [(depth, outer) for depth, outer in around if depth < indent] + [(indent, name)]
        if keyword == "def":
            yield ".".join(outer for _, outer in around)


def _known(start: str, namespace: dict[str, Any]) -> Iterator[str]:
    """Names in the namespace, or attributes of the object before the last dot, that are or may hold functions."""
    *path, _ = start.split(".")
    if not path:
        yield from (name for name, value in namespace.items() if name[:1] != "_" and _leads_to_code(value))
        return
    owner = namespace.get(path[0])
    for attribute in path[1:]:
        owner = inspect.getattr_static(owner, attribute, None)
    holder = owner if isinstance(owner, (type, ModuleType)) else type(owner)
    for name in dir(holder) if owner is not None else ():
        if _leads_to_code(inspect.getattr_static(holder, name, None)):
            yield ".".join((*path, name))


def _leads_to_code(value: Any) -> bool:
    if isinstance(value, (type, ModuleType)) or hasattr(type(value), "forward"):
        return True
    try:
        return any(callables.functions_of(value))
    except (TypeError, ValueError):
        return False
