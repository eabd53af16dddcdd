"""Where tests marked `gpu` run: on a simulated CUDA GPU, or with MEMLAB_TEST_GPU=real, unchanged, on the real ones."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import pytest

from pytorch_memlab_c.simulate import availability

REAL = os.environ.get("MEMLAB_TEST_GPU") == "real"


def _reason_to_skip() -> str | None:
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    if availability.cuda_version_of_build() is None:
        return "this PyTorch is a CPU-only build"
    return None


def device_count() -> int:
    """CUDA devices that a test program finds."""
    if not REAL:
        return 2
    import torch

    return torch.cuda.device_count()


def environment() -> dict[str, str]:
    """Environment variables that give a test program its GPUs."""
    return {} if REAL else {"PYTORCH_MEMLAB_SIMULATE": "a100-40gb:2"}


def gpu(*, devices: int = 1) -> Callable[[Any], Any]:
    """Marks a test that runs programs on `devices` CUDA devices."""
    reason = _reason_to_skip()
    if reason is None and devices > 1 and device_count() < devices:
        reason = f"needs {devices} CUDA devices"

    def mark(test: Any) -> Any:
        return pytest.mark.gpu(pytest.mark.skipif(reason is not None, reason=reason or "")(test))

    return mark


def simulated() -> Any:
    """Marks tests of programs on a simulated GPU of a size of their own."""
    reason = "about a simulated GPU" if REAL else _reason_to_skip()
    return [pytest.mark.simcuda, pytest.mark.skipif(reason is not None, reason=reason or "")]
