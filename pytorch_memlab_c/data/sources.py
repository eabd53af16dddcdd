"""Source lines of a code object, taken when it is registered.

The text is for display only: whenever it is not available, or the text in the file is no longer
this function, the answer is None and reports show line numbers without text.
"""

from __future__ import annotations

import inspect
import io
import linecache
import os
import re
import sys
import tokenize
import unicodedata
from collections.abc import Iterator, Sequence
from types import CodeType, ModuleType

from .reloaded import reloaded_lines

Source = tuple[int, list[str]]


def source_of(code: CodeType, module: str | None = None) -> Source | None:
    """The number of the first line and the lines, without their line ends, of ``code``.

    For a function from its first decorator to its last line; for the code of a module or of a
    notebook cell the whole text. None where there is no source (``exec``, ``-c``, plain REPL) or
    the file no longer holds this function. ``module``: the name of the function's module.
    """
    lines = _file_lines(code.co_filename)
    if _is_module(code):
        return (1, _strip_ends(lines)) if lines else None
    reloaded = reloaded_lines(code, _lines_of_module(module) if _is_no_file(code.co_filename) else lines)
    return _function_in(code, [f"{line}\n" for line in reloaded] if reloaded else lines)


def source_note(code: CodeType, source: Source | None) -> str | None:
    """Why ``source_of`` gave no text though there is a file, or another text than what stands on its lines."""
    lines = _file_lines(code.co_filename)
    if source is None:
        changed = f"{file_label(code.co_filename)} has changed since it was loaded: its lines are shown without text"
        return changed if lines and not _is_no_file(code.co_filename) else None
    first, text = source
    same = text == _strip_ends(lines[first - 1 :][: len(text)])
    return None if same else "reloaded by IPython's autoreload, which numbers the lines of a function from 1"


def _function_in(code: CodeType, lines: list[str]) -> Source | None:
    first = code.co_firstlineno
    if not 1 <= first <= len(lines):
        return None
    block = _block(lines[first - 1 :], _last_line(code) - first + 1)
    stripped = _strip_ends(block)
    return (first, stripped) if _is_source_of(code, stripped) else None


def def_line(code: CodeType, lines: Sequence[str] | None) -> int:
    """The line number of ``def`` (``async def``, ``lambda``), below any decorators.

    ``lines`` are the lines ``source_of`` gave, from ``code.co_firstlineno`` on; without them the
    answer is ``code.co_firstlineno``.
    """
    if not lines or _is_module(code) or not lines[0].lstrip().startswith("@"):
        return code.co_firstlineno
    offset = _def_offset(lines)
    return code.co_firstlineno + (offset or 0)


def qualname_of(code: CodeType) -> str:
    """The name of a function, with the classes and functions around it where Python knows them (from 3.11 on)."""
    name: str = getattr(code, "co_qualname", code.co_name)
    return name


def file_label(filename: str) -> str:
    """A file's name for a reader: without folders, and ``Cell In[2]`` for a cell of the notebook that runs."""
    try:
        shell = sys.modules["IPython"].get_ipython()
        cell = shell.compile.format_code_name(filename)
    except Exception:  # no IPython, or none that runs
        cell = None
    return " ".join(cell) if cell else os.path.basename(filename)


def _is_no_file(filename: str) -> bool:
    """A name such as ``<string>``, which all texts given to ``exec`` share: linecache may have another one's lines."""
    return filename.startswith("<") and filename.endswith(">")


def _file_lines(filename: str) -> list[str]:
    """All lines of a file or notebook cell, through ``linecache``; empty where there is none."""
    try:
        linecache.checkcache(filename)
        return linecache.getlines(filename) or linecache.getlines(filename, _globals_of(filename))
    except Exception:  # an unreadable file, a wrong coding cookie, a foreign __loader__
        return []


def _lines_of_module(name: str | None) -> list[str]:
    """Where a function is in no file of its own."""
    module = sys.modules.get(name or "")
    if not isinstance(module, ModuleType):
        return []
    filename = object.__getattribute__(module, "__dict__").get("__file__")
    return _file_lines(filename) if isinstance(filename, str) else []


def _globals_of(filename: str) -> dict[str, object] | None:
    """The globals of the module of ``filename``: its loader has the text of a zip import."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            # Not vars(): that would import what a lazy module refers to.
            attributes: dict[str, object] = object.__getattribute__(module, "__dict__")
            if attributes.get("__file__") == filename:
                return attributes
    return None


def _is_module(code: CodeType) -> bool:
    """Whether ``code`` is a module's or a notebook cell's, not a function's or a class body's."""
    return not code.co_flags & inspect.CO_OPTIMIZED and code.co_name.startswith(("<module>", "<cell line"))


def _last_line(code: CodeType) -> int:
    """The highest line number of ``code`` and the code nested in it."""
    own = [line for _, _, line in code.co_lines() if line is not None]
    nested = [_last_line(const) for const in code.co_consts if isinstance(const, CodeType)]
    return max([code.co_firstlineno, *own, *nested])


def _block(lines: list[str], at_least: int) -> list[str]:
    """The block that starts ``lines``, and never fewer than ``at_least`` lines."""
    try:
        found = len(inspect.getblock(lines))
    except (SyntaxError, tokenize.TokenError):  # a lambda cut out of its expression
        found = 0
    return lines[: max(found, at_least, 1)]


def _strip_ends(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _is_source_of(code: CodeType, lines: Sequence[str]) -> bool:
    """Whether ``lines`` still hold the function: guards against files changed since the import."""
    name = code.co_name
    if name == "<lambda>":
        return "lambda" in lines[0]
    if name.startswith("<"):
        return True
    offset = _def_offset(lines) if lines[0].lstrip().startswith("@") else 0
    if offset is None:
        return False
    start = unicodedata.normalize("NFKC", "\n".join(lines[offset : offset + 2]))
    return re.search(rf"\b(def|class)[\s\\]+{re.escape(name)}\b", start) is not None


def _def_offset(lines: Sequence[str]) -> int | None:
    """Lines between the first decorator and its ``def``, ``async def`` or ``class``, or None."""
    at_start = True
    try:
        for token in _tokens(lines):
            if token.type == tokenize.NEWLINE:
                at_start = True
            elif at_start and token.type == tokenize.NAME:
                keyword = token.string in ("def", "async", "class")
                return token.start[0] - 1 if keyword else None
            elif token.type == tokenize.OP:
                at_start = False
    except (SyntaxError, tokenize.TokenError):
        pass
    return None


def _tokens(lines: Sequence[str]) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline)
