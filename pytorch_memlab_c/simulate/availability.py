"""Whether a GPU can be simulated here: the system, and the build of PyTorch."""

from __future__ import annotations

import importlib.machinery
import re
import sys
from pathlib import Path

_SUPPORTED_CUDA = (12, 13)  # those whose struct layouts native/simcuda/cuda_abi.h states


class SimulationUnavailable(RuntimeError):
    """The simulated GPU cannot work here: another OS, a PyTorch without CUDA, an incomplete installation."""


def cuda_version_of_build() -> str | None:
    """The CUDA version PyTorch was built for, or None; read from its files, without importing it."""
    # Not importlib.util.find_spec: that would ask the start-up hook, which would enable what the variable says.
    spec = importlib.machinery.PathFinder.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise SimulationUnavailable("PyTorch is not installed: the simulated GPU needs its CUDA build")
    try:
        text = (Path(list(spec.submodule_search_locations)[0]) / "version.py").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    match = re.search(r"^cuda\s*(?::[^=]*)?=\s*(?:None|['\"]([^'\"]*)['\"])", text, re.MULTILINE)
    return match[1] if match else "unknown"


def check_platform() -> None:
    """Raise `SimulationUnavailable` on a system that cannot simulate."""
    if not sys.platform.startswith("linux"):
        raise SimulationUnavailable(f"the simulated GPU needs Linux; this is {sys.platform}")


def check_build(version: str | None) -> None:
    """Raise `SimulationUnavailable` for a build of PyTorch without CUDA, or for a CUDA that is not known."""
    if version is None:
        raise SimulationUnavailable(
            "this PyTorch is a CPU-only build: the simulated GPU needs the CUDA build of PyTorch "
            "(no driver and no GPU are needed for it); see https://pytorch.org/get-started/locally/"
        )
    major = version.split(".")[0]
    if major.isdecimal() and int(major) not in _SUPPORTED_CUDA:
        known = " and ".join(map(str, _SUPPORTED_CUDA))
        raise SimulationUnavailable(f"this PyTorch is built for CUDA {version}; the simulated GPU knows CUDA {known}")
