"""Options of `%mlrun` and `%%mlrun`: separated from the code, and checked before anything runs."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from pytorch_memlab_c.data import columns
from pytorch_memlab_c.engine import target_device

HOW_TO_RUN = "write the code behind it (%mlrun y = f(2)), or below %%mlrun as the rest of the cell"
# A quoted value may hold spaces. In code, where quotes may be anywhere, any split will do: only its start counts.
_WORD = re.compile(r""""[^"]*"(?!\S)|'[^']*'(?!\S)|\S+""")


@dataclass(frozen=True)
class Options:
    """One call of the magic. `body` is the code to run, `heading` the line `%%mlrun ...` above it (None: `%mlrun`)."""

    functions: tuple[str, ...]
    columns: tuple[str, ...]
    default_columns: bool
    gpu: str | None
    quiet: bool
    return_profiler: bool
    path: str | None
    body: str
    heading: str | None


def parse(parser: argparse.ArgumentParser, line: str, cell: str | None) -> Options:
    """The options of a call, checked; raises `UsageError` with one line that says what to write instead."""
    arguments, statement = split(parser, line)
    return Options(
        tuple(arguments.function),
        _checked_columns(arguments.column, arguments.no_default_columns),
        not arguments.no_default_columns,
        _checked_gpu(arguments.gpu),
        arguments.quiet,
        arguments.return_profiler,
        _checked_path(arguments.dump_profile),
        _body(statement, cell),
        None if cell is None else f"%%mlrun {line}".rstrip(),
    )


def split(parser: argparse.ArgumentParser, line: str) -> tuple[Any, str]:
    """The options as argparse gives them, unchecked, and the code behind them, to the letter."""
    words = list(_WORD.finditer(line))
    arguments = _arguments(parser, [_unquoted(word[0]) for word in words])
    rest = arguments.statement
    statement = line[words[-len(rest)].start() :].strip() if rest else ""
    return arguments, statement[2:].strip() if rest and rest[0] == "--" else statement


def _unquoted(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def _arguments(parser: argparse.ArgumentParser, words: list[str]) -> Any:
    try:
        return parser.parse_args(words)
    except UsageError as error:
        hint = "the options come first, then the code; %mlrun? explains them"
        if "unrecognized" in str(error):
            hint += ", and code that begins with '-' is written after '--' (%mlrun -- -x)"
        raise UsageError(f"{error}: {hint}") from None


def _body(statement: str, cell: str | None) -> str:
    if cell is None:
        if not statement:
            raise UsageError(f"%mlrun has nothing to run: {HOW_TO_RUN}")
        return statement
    if statement:
        raise UsageError(f"{statement!r} is on the line of %%mlrun, which takes options only: put it below")
    if not cell.strip():
        raise UsageError(f"%%mlrun has nothing to run: {HOW_TO_RUN}")
    return cell


def _checked_columns(names: list[str], no_defaults: bool) -> tuple[str, ...]:
    if no_defaults and not names:
        raise UsageError("-D hides the default columns and no other is named: add one, as in -D -c net.first")
    try:
        return columns.check_columns(names)
    except ValueError:
        wrong = next(name for name in names if name not in columns.valid_columns())
        raise UsageError(
            f"-c {columns.unknown_column(wrong)} Any key of torch.cuda.memory_stats() is one, and "
            "hits, net, net.first, net.max, net.last, allocated, allocations, tensor_bytes.peak; Tab completes them"
        ) from None


def _checked_gpu(gpu: str | None) -> str | None:
    if gpu is None or gpu == "all":
        return gpu
    try:
        target_device.available_slot(gpu)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UsageError(f"-g {gpu}: {error}".replace("device='cpu'", "-g cpu")) from None
    return gpu


def _checked_path(path: str | None) -> str | None:
    """Refused before the code runs, where that is known: its results are then not lost."""
    if path is None:
        return None
    if not path:
        raise UsageError("-T names no file: write one, as in -T lines.txt")
    path = os.path.expanduser(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"-T {path}: there is no folder {folder}; make it first, or name another file")
    if os.path.isdir(path):
        raise UsageError(f"-T {path} is a folder; name a file in it, as in -T {os.path.join(path, 'lines.txt')}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise UsageError(f"-T {path} cannot be written to: its permissions forbid it; name another file")
    return path
