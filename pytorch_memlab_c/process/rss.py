"""``measure_peak_rss``: the highest resident memory of a command, from its start to its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _native
from .metrics import MetricResult, complete, unavailable

_SCOPE = "the child process over its whole life; of the processes it starts, each alone and only if it waits for them"
_METHOD = "wait4 ru_maxrss"
_STARTER = "pml_starter"


def measure_peak_rss(command: Sequence[str], *, cwd: str | os.PathLike[str] | None = None) -> MetricResult:
    """Run a command in a new process and give the highest resident memory (RSS) that it reached, in bytes.

    The command runs without a shell, with this process's standard streams and environment, and is looked up as
    `subprocess` does. The figure is the kernel's own high-water mark: no peak is too short for it. Memory of this
    process is not in it; a floor of about 1 MB, the program that starts the command, is. Processes that the command
    starts are not added up: the figure is the highest of the command and of each process it has waited for.

    Ctrl-C reaches the command too; it has a quarter of a second to end by itself, then it is killed.

    Args:
        command: the program and its arguments, each a string.
        cwd: the folder to run it in.

    Returns:
        A `MetricResult` in bytes; "unavailable" if this program ignores SIGCHLD or waited for the child itself.

    Raises:
        ValueError: the command is empty or not a sequence of strings.
        NotImplementedError: this system has no `wait4`; nothing was started.
        OSError: the command or `cwd` is not there or may not be used (`FileNotFoundError`, `PermissionError`, ...).
        subprocess.CalledProcessError: it ended with a code other than 0, or (negative) by a signal.
    """
    words = _checked(command)
    if not hasattr(os, "wait4"):
        raise NotImplementedError("measure_peak_rss needs wait4, which this system does not have")
    folder = None if cwd is None else os.fspath(cwd)
    code, peak = _native.run_child(_starter(), _starter_arguments(words, folder), words[0], folder)
    if code:
        raise _called_process_error(code, words)
    if peak is None:
        return unavailable(unit="bytes", scope=_SCOPE, method=_METHOD)
    return complete(peak, unit="bytes", scope=_SCOPE, method=_METHOD)


def _checked(command: Any) -> list[str]:
    if isinstance(command, (str, bytes)) or not isinstance(command, Sequence):
        raise ValueError(f"the command must be a sequence of strings, such as ['python', 'train.py'], not {command!r}")
    words = list(command)
    if not words or words[0] == "":
        raise ValueError("the command is empty")
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"the command must be strings; {word!r} is {type(word).__name__}")
        if "\0" in word:
            raise ValueError(f"{word!r} has a null character in it")
    return words


def _starter() -> bytes:
    return os.fsencode(Path(_native.__file__).with_name(_STARTER))


def _starter_arguments(words: list[str], folder: str | bytes | None) -> tuple[bytes, ...]:
    """What the starter wants after its own first arguments (see native/child_starter.c)."""
    program = os.fsencode(words[0])
    if os.path.dirname(program):
        candidates = [program]
    else:
        candidates = [os.path.join(os.fsencode(folder), program) for folder in os.get_exec_path()]
    where = b"-" if folder is None else b"+" + os.fsencode(folder)
    return (where, str(len(candidates)).encode(), *candidates, *map(os.fsencode, words))


def _called_process_error(code: int, words: list[str]) -> Exception:
    from subprocess import CalledProcessError  # 5 ms of import time that only a failure needs

    return CalledProcessError(code, words)
