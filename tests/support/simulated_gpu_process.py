"""Runs pieces of test code on the simulated GPU, each in a process of its own.

`fresh` starts an interpreter. `Zygote` starts one that imports torch with the simulated GPU once and forks for each
piece: a fork has touched CUDA no more than the zygote, which is not at all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
START_UP = REPOSITORY / "native" / "simcuda" / "startup"

_ZYGOTE = """
import json, os, sys, traceback
from pytorch_memlab_c import simulate
simulate.enable(sys.argv[1], count=int(sys.argv[2]))
import torch

def child(code, writer):
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    try:
        exec(compile(code, "<test>", "exec"), {"__name__": "__main__", "torch": torch, "simulate": simulate})
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

for line in sys.stdin:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(json.loads(line), writer)
    os.close(writer)
    with os.fdopen(reader, errors="replace") as pipe:
        output = pipe.read()
    _, status = os.waitpid(pid, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), output]), flush=True)
"""


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what would switch the simulation or the allocator."""
    drop = ("PYTORCH_MEMLAB_SIMULATE", "CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    kept["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *filter(None, [kept.get("PYTHONPATH")])])
    return kept | changes


def fresh(
    code: str, *, check: bool = True, folder: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Runs code in a new interpreter; with check, fails the test with its output if it fails."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(**changes),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if check:
        assert result.returncode == 0, result.stdout + result.stderr
    return result


def with_start_up_file(folder: Path) -> dict[str, str]:
    """Environment changes after which interpreters process the .pth file as if it were installed."""
    (folder / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(START_UP)!r})\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)])}


class Zygote:
    def __init__(self, preset: str, count: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ZYGOTE, preset, str(count)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> str:
        """Runs code in a fork; returns what it printed, fails the test with it if the code fails."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(textwrap.dedent(code)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the zygote died"
        status, output = json.loads(answer)
        assert status == 0, f"exit status {status}\n{output}"
        return output

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
