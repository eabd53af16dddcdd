"""What a report says of the run itself. Nothing is imported or initialised for it."""

from __future__ import annotations

import platform
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import simulate
from ..data.run_info import RunInfo
from . import ranks as job


class Run:
    """From now until `info`."""

    def __init__(self, words: Sequence[str]) -> None:
        self._command = shlex.join(words)
        self._started = time.strftime("%Y-%m-%d %H:%M:%S")
        self._clock = time.monotonic()

    def info(self) -> RunInfo:
        """What is known at the end of the run."""
        torch = sys.modules.get("torch")
        version = getattr(torch, "__version__", None)
        rank, ranks = job.rank(), job.ranks()
        gpus = _gpus(torch)
        simulated = bool(gpus) and simulate.is_enabled()
        return RunInfo(
            command=self._command,
            started=self._started,
            seconds=round(time.monotonic() - self._clock, 3),
            python=platform.python_version(),
            torch=None if version is None else str(version),
            gpus=gpus,
            simulated=simulated,
            driver=_driver() if gpus and not simulated else None,
            rank=int(rank) if rank else None,
            ranks=int(ranks) if ranks else None,
        )


def _gpus(torch: Any) -> tuple[str, ...]:
    """The names of the GPUs; nothing where CUDA was not used."""
    try:
        used = torch.cuda.is_initialized()
        return tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())) if used else ()
    except Exception:  # no PyTorch, a damaged one, or one without CUDA
        return ()


def _driver() -> str | None:
    """The version of NVIDIA's driver."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\s(\d{3,}\.\d[\d.]*)\s", text)
    return found[1] if found else None
