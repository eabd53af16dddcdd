"""`-o`: the files that a report is written to, by their suffixes; without one, text on standard output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from ..line_profiler.records import LineRecords
from ..render.files import write_file
from ..render.lines import plain
from ..render.report import full_report, short_report
from ..render.terminal import write_report
from ..render.text import write_text
from .ranks import rank
from .usage import UsageError

Columns = Iterable[str] | None
Write = Callable[[LineRecords, str, Columns, str | None], object]


def _write_text(records: LineRecords, path: str, columns: Columns, device: str | None) -> None:
    write_file(path, records.to_text(columns=columns, device=device))


_WRITERS: dict[str, Write] = {
    ".html": lambda records, path, columns, device: records.to_html(path, columns=columns, device=device),
    ".json": lambda records, path, columns, device: records.to_json(path),
    ".csv": lambda records, path, columns, device: records.to_csv(path, columns=columns, device=device),
    ".txt": _write_text,
}
SUFFIXES = ", ".join(_WRITERS)


def checked_paths(paths: Iterable[str], suffixes: Iterable[str] = tuple(_WRITERS)) -> list[str]:
    """The paths, absolute: the program may change the folder. `UsageError` for those that cannot be written."""
    return [_checked_path(path, tuple(suffixes)) for path in dict.fromkeys(paths)]


def _checked_path(path: str, suffixes: tuple[str, ...]) -> str:
    if Path(path).suffix.lower() not in suffixes:
        raise UsageError(f"-o {path}: the file's suffix says what is written; give one of {', '.join(suffixes)}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"-o {path}: there is no folder {folder}")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise UsageError(f"-o {path}: it cannot be written there")
    return os.path.abspath(path)


def misplaced_output(arguments: Sequence[str]) -> str | None:
    """What looks like `-o FILE` of this command among a program's own arguments, as it was typed; else None."""
    for word, following in zip(arguments, [*arguments[1:], ""]):
        if word in ("-o", "--output"):
            word, path = f"{word} {following}", following
        elif word.startswith("--output="):
            path = word.partition("=")[2]
        elif word.startswith("-o"):
            path = word[2:].removeprefix("=")
        else:
            continue
        if Path(path).suffix.lower() in _WRITERS:
            return word
    return None


def of_this_rank(paths: Iterable[str]) -> list[str]:
    """In a job of several ranks (torchrun), each has files of its own: `report.rank0.json`."""
    number = rank()
    if not number:
        return list(paths)
    return [str(Path(path).with_suffix(f".rank{number}{Path(path).suffix}")) for path in paths]


def write_records(
    records: LineRecords, paths: Iterable[str], columns: Columns = None, device: str | None = None
) -> None:
    """Each file whole or not at all; `OSError` and `ValueError` as their writers raise them."""
    for path in paths:
        _WRITERS[Path(path).suffix.lower()](records, path, columns, device)


def print_text(text: str) -> None:
    """On standard output, which may be closed, or a pipe that nobody reads any more."""
    _print(sys.stdout if sys.stdout is not None else sys.__stdout__, lambda stream: write_text(stream, text), text)


class Printing(NamedTuple):
    """How a report is printed: on standard error or not, short or not, and with which colours."""

    to_stderr: bool
    verbose: bool
    color: str

    @classmethod
    def of(cls, options: argparse.Namespace) -> Printing:
        """As the command line says."""
        return cls(options.stderr, options.verbose, options.color)

    def print(self, records: LineRecords, columns: Columns, device: str | None = None, named: bool = False) -> None:
        """Print it; `named`: whether the functions were asked for one by one."""
        if self.verbose:
            lines = full_report(records, columns, device)
        else:
            lines = short_report(records, columns, device, named)
        stream = sys.stderr if self.to_stderr else sys.stdout if sys.stdout is not None else sys.__stdout__
        _print(stream, lambda to: write_report(to, lines, self.color), plain(lines))


def _print(stream: TextIO | None, write: Callable[[TextIO], None], text: str) -> None:
    if stream is None:
        return
    try:
        write(stream)
        stream.flush()
    except RuntimeError:  # a signal came while the program itself was writing
        os.write(stream.fileno(), text.encode(errors="backslashreplace"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except ValueError:  # closed
        pass


def tell(message: str) -> None:
    """A line on standard error, if it is there."""
    try:
        if sys.stderr is not None:
            write_text(sys.stderr, f"pytorch_memlab_c{_rank_label()}: {message}\n")
    except (OSError, ValueError):
        pass


def _rank_label() -> str:
    """Which rank of a job of several (torchrun) says it."""
    return f" [rank {rank()}]" if rank() else ""
