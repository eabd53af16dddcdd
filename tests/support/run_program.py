"""Runs a program in a fresh interpreter: for what touches the trace function, fork, exit or PyTorch's libraries."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parent


@dataclass(frozen=True)
class Run:
    """What a program left behind; ``values`` is what it gave to ``program_support.report``."""

    returncode: int
    stdout: str
    stderr: str
    values: dict[str, Any]


#: The environment of a program whose events come from the trace function, on every Python.
SETTRACE = {"PYTORCH_MEMLAB_ENGINE": "settrace"}


def is_own_setting(name: str) -> bool:
    """Whether a variable sets the profiler for this process alone; the engine that is tested is meant for all."""
    return name.startswith("PYTORCH_MEMLAB_") and name != "PYTORCH_MEMLAB_ENGINE"


def run_program(
    source: str,
    directory: Path,
    *,
    command: list[str] | None = None,
    env: dict[str, str] | None = None,
    interrupt_at: str | None = None,
    timeout: float = 120,
    check: bool = True,
) -> Run:
    """Write ``source`` to ``directory/program.py`` and run it there.

    ``command`` takes the place of ``python program.py`` (without the interpreter). ``interrupt_at``: send SIGINT when
    this line has appeared on standard output. ``check``: it must end with code 0.
    """
    (directory / "program.py").write_text(textwrap.dedent(source), encoding="utf-8")
    results = directory / "results.json"
    process = subprocess.Popen(
        [sys.executable, *(command or ["program.py"])],
        cwd=directory,
        env=_environment(results, env),
        stdin=subprocess.DEVNULL,
        stdout=open(directory / "stdout", "wb"),
        stderr=open(directory / "stderr", "wb"),
    )
    try:
        if interrupt_at is not None:
            _wait_for(interrupt_at, directory / "stdout", process, timeout)
            process.send_signal(signal.SIGINT)
        process.wait(timeout)
    finally:
        process.kill()
        process.wait()
    run = Run(process.returncode, _text(directory / "stdout"), _text(directory / "stderr"), _results(results))
    if check:
        assert run.returncode == 0, f"exit code {run.returncode}\n{run.stdout}\n{run.stderr}"
    return run


def _environment(results: Path, extra: dict[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not is_own_setting(name)}
    paths = [str(SUPPORT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "TEST_RESULTS": str(results), **(extra or {})}


def _wait_for(line: str, output: Path, process: subprocess.Popen[bytes], timeout: float) -> None:
    end = time.monotonic() + timeout
    while line not in _text(output).splitlines():
        assert process.poll() is None and time.monotonic() < end, f"{line!r} was never printed: {_text(output)}"
        time.sleep(0.02)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def _results(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    values: dict[str, Any] = {}
    for line in path.read_text().splitlines():
        values.update(json.loads(line))
    return values


def titles(report: str) -> list[str]:
    """The functions that a text report has tables of, in its order."""
    return re.findall(r"^## (.*)$", report, re.MULTILINE)


def cells(report: str, code: str) -> list[str]:
    """The values before the line number in the row of ``code``: `1.00K`, `-3`, ..."""
    rows = [line for line in report.splitlines() if re.search(rf" \d+(?:  |> )\s*{re.escape(code)}$", line)]
    assert len(rows) == 1, f"{len(rows)} rows show {code!r} in:\n{report}"
    return rows[0][: -len(code)].split()[:-1]
