"""Running programs under the command line, and as plain Python runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from run_program import SUPPORT, is_own_setting

RUN = ["-m", "pytorch_memlab_c", "run"]


def environment(**extra: str) -> dict[str, str]:
    """This process's environment for a program: no simulation or rank of this process, and the test helpers."""
    ranks = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    kept = {name: value for name, value in os.environ.items() if not (is_own_setting(name) or name.startswith(ranks))}
    path = os.pathsep.join([str(SUPPORT), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def write(folder: Path, files: dict[str, str]) -> None:
    """Files by their paths in the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


def python(
    folder: Path, *words: str, stdin: str = "", command: list[str] | None = None, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Runs the interpreter in `folder`."""
    return subprocess.run(
        [sys.executable, *(command or []), *words],
        cwd=folder,
        env=environment(**extra),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )


def run(folder: Path, *words: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    """Runs `python -m pytorch_memlab_c run`."""
    return python(folder, *words, stdin=stdin, command=RUN, **extra)


def without_our_lines(text: str) -> str:
    """Standard error without what the command line says there itself, and without addresses."""
    return re.sub(r"(?m)^pytorch_memlab_c: .*\n", "", re.sub("0x[0-9a-f]+", "0x", text))
