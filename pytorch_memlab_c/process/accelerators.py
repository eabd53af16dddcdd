"""XPU and MPS: their allocators report no events, so statistics are read while one of their windows is open."""

from __future__ import annotations

import threading
from typing import Any

from .. import _native
from ..engine import allocator_stats, following
from .devices import Device

_lock = threading.Lock()
_open_windows = 0


def connect(device: Device) -> None:
    """Give the engine PyTorch's statistics of this accelerator.

    Raises:
        NotImplementedError: this version of PyTorch has none for it.
    """
    torch: Any = following.torch_module()
    missing = [name for name in allocator_stats.ACCELERATOR_API if not hasattr(torch._C, name)]
    if missing:
        raise NotImplementedError(
            f"the memory of {device.name} cannot be measured with PyTorch {torch.__version__}: "
            f"it has no {', '.join('torch._C.' + name for name in missing)}"
        )
    try:
        device.synchronize()  # the allocator comes into being with the first use
        torch._C._accelerator_getDeviceStats(device.slot - 1)
    except (NotImplementedError, RuntimeError) as error:
        raise NotImplementedError(
            f"the memory of {device.name} cannot be measured with PyTorch {torch.__version__}: {error}"
        ) from error
    allocator_stats.connect_accelerator(torch)


def begin_window() -> None:
    """From the first open window on, boundaries of segments and windows read the statistics."""
    _count(1)


def end_window() -> None:
    """After the last one they do so only where the engine has no events anyway."""
    _count(-1)


def _count(change: int) -> None:
    global _open_windows
    with _lock:
        _open_windows += change
        _native.use_statistics_only(_open_windows > 0 or following.sampler() == "statistics")
