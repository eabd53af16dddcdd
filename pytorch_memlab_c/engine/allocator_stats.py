"""PyTorch's allocator statistics as the engine reads them, and the peaks that its readings hide from the user.

An exact peak of one segment needs `reset_peak_memory_stats` at its start. The user's own peak
(`torch.cuda.max_memory_allocated()`) must not fall by that: the engine keeps what it resets, and the two functions of
`torch._C` below give it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _native

_PEAK, _LEVEL, _COUNT = 0, 1, 2
_COUNTERS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")
#: Reading and resetting the statistics of whichever accelerator PyTorch was built for.
ACCELERATOR_API = ("_accelerator_getDeviceStats", "_accelerator_resetPeakStats")
_connected = False


def column_id(name: str) -> int:
    """The engine's id of a statistics column, a key of `torch.cuda.memory_stats()`."""
    path = tuple(name.split("."))
    if path[-1] == "peak":
        return _native.add_column(path, _PEAK)
    if path[-1] in ("allocated", "freed") or name in _COUNTERS:
        return _native.add_column(path, _COUNT)
    return _native.add_column(path, _LEVEL)


def connect(torch: Any) -> None:
    """Give the engine PyTorch's own functions, and put the ones that keep the user's peaks in their place."""
    global _connected
    core = torch._C
    if _connected or not hasattr(core, "_cuda_memoryStats"):
        return
    read, reset = core._cuda_memoryStats, core._cuda_resetPeakMemoryStats

    def devices() -> int:
        return torch.cuda.device_count() if torch.cuda.is_initialized() else 0

    _native.connect_statistics(read, reset, devices)
    core._cuda_memoryStats = _with_kept_peaks(read)
    core._cuda_resetPeakMemoryStats = _forgetting(reset)
    _connect_accelerator(core)
    _connected = True


def _connect_accelerator(core: Any) -> None:
    """The device-neutral names for the same statistics (`torch.accelerator`)."""
    _give_back(core, *ACCELERATOR_API)


def connect_accelerator(torch: Any) -> None:
    """The same as `connect` for the accelerator of a build without CUDA (XPU, MPS)."""
    global _connected
    if _connected:
        return
    core = torch._C
    read, reset = (getattr(core, name) for name in ACCELERATOR_API)
    _native.connect_statistics(read, reset, torch.accelerator.device_count)
    _give_back(core, *ACCELERATOR_API)
    _give_back(core, "_xpu_memoryStats", "_xpu_resetPeakMemoryStats")
    _connected = True


def _give_back(core: Any, read: str, reset: str) -> None:
    """Let a pair of functions of `torch._C` keep the user's peaks, where they are there."""
    if hasattr(core, read) and hasattr(core, reset):
        setattr(core, read, _with_kept_peaks(getattr(core, read)))
        setattr(core, reset, _forgetting(getattr(core, reset)))


def _with_kept_peaks(read: Callable[[int], dict[str, Any]]) -> Callable[[int], dict[str, Any]]:
    def memory_stats(device: int) -> dict[str, Any]:
        stats = read(device)
        kept = _native.kept_peaks(device)
        if kept is not None:
            _native.merge_peaks(stats, kept)
        return stats

    return memory_stats


def _forgetting(reset: Callable[[int], None]) -> Callable[[int], None]:
    def reset_peaks(device: int) -> None:
        if _native.kept_peaks(device) is not None:
            _native.sample()  # open segments keep what they have reached
            _native.forget_peaks(device)
        reset(device)

    return reset_peaks
