"""`--device`: whether it is there, asked before the program runs."""

from __future__ import annotations

import json
import subprocess
import sys

from .. import simulate
from ..data import advice
from ..engine.target_device import parse_slot

_ASK = """\
import json, torch
print(json.dumps([torch.__version__, torch.cuda._is_compiled(), torch.cuda.device_count()]))
"""


def check_device(device: str | None) -> None:
    """Raises `ValueError` or `RuntimeError` for a device that is not there, and says what to give instead.

    PyTorch is asked in another process: the program here is to find it as it would without the profiler.
    """
    if device in (None, "all") or parse_slot(device) == 0 or simulate.is_enabled():
        return
    index = parse_slot(device) - 1
    answer = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True)
    if answer.returncode:
        reason = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RuntimeError(f"--device {device}: PyTorch cannot be imported here: {reason}")
    version, has_cuda, count = json.loads(answer.stdout.splitlines()[-1])
    if not has_cuda:
        raise RuntimeError(
            f"--device {device}: this build of PyTorch ({version}) has no CUDA; use {advice.device('cpu')}"
        )
    if count == 0:
        raise RuntimeError(
            f"--device {device}: there is no CUDA device here; use {advice.device('cpu')}, "
            f"or {advice.simulated_gpu()} for one"
        )
    if index >= count:
        there = ", ".join(f"cuda:{i}" for i in range(count))
        raise ValueError(f"--device {device}: it is not there; this machine has {there}")
