"""A made-up XPU or MPS backend in PyTorch's place: one allocator's statistics behind the functions that PyTorch has.

Import it before pytorch_memlab_c. `allocate` and `free` are the allocator; reserved bytes go in steps of 1 MiB and
stay. It looks like a build of PyTorch without CUDA.
"""

from __future__ import annotations

from typing import Any

import torch

STEP = 1 << 20
calls: list[str] = []
_devices: list[dict[str, dict[str, int]]] = []


def install(kind: str, count: int = 1, without: str = "") -> None:
    """`without`: a function of torch._C that this version of PyTorch lacks."""
    _devices[:] = [
        {name: _stat() for name in ("active_bytes", "allocated_bytes", "reserved_bytes")} for _ in range(count)
    ]
    core: Any = torch._C
    for name in [name for name in dir(core) if name.startswith(("_cuda_memoryStats", "_cuda_resetPeak"))]:
        delattr(core, name)
    torch.cuda._is_compiled = lambda: False
    core._accelerator_getDeviceStats, core._accelerator_resetPeakStats = _read, _reset
    core._accelerator_isAllocatorInitialized = lambda: True
    core._accelerator_getDeviceIndex = lambda: 0
    torch.accelerator.device_count = lambda: count
    torch.accelerator.current_accelerator = lambda check_available=False: torch.device(kind)
    {"xpu": _install_xpu, "mps": _install_mps}[kind](core, count)
    if without:
        delattr(core, without)


def _install_xpu(core: Any, count: int) -> None:
    core._xpu_memoryStats, core._xpu_resetPeakMemoryStats = _read, _reset
    torch.xpu._is_compiled = torch.xpu.memory.is_initialized = lambda: True
    torch.xpu.is_available = lambda: count > 0
    torch.xpu.device_count = lambda: count
    torch.xpu.current_device = lambda: count - 1
    torch.xpu.synchronize = lambda device=None: calls.append(f"synchronize {device}")


def _install_mps(core: Any, count: int) -> None:
    torch.backends.mps.is_built = lambda: True
    torch.backends.mps.is_available = lambda: count > 0
    torch.mps.synchronize = lambda: calls.append("synchronize")


def _stat() -> dict[str, int]:
    return {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


def allocate(size: int, device: int = 0) -> int:
    stats = _devices[device]
    for name in ("active_bytes", "allocated_bytes"):
        _raise(stats[name], size)
    reserved = stats["reserved_bytes"]
    missing = stats["allocated_bytes"]["current"] - reserved["current"]
    if missing > 0:
        _raise(reserved, -(-missing // STEP) * STEP)
    return size


def free(size: int, device: int = 0) -> None:
    for name in ("active_bytes", "allocated_bytes"):
        _devices[device][name]["current"] -= size


def _raise(stat: dict[str, int], size: int) -> None:
    stat["current"] += size
    stat["allocated"] += size
    stat["peak"] = max(stat["peak"], stat["current"])


def _read(device: int) -> dict[str, Any]:
    return {name: {"all": dict(stat)} for name, stat in _devices[device].items()}


def _reset(device: int) -> None:
    for stat in _devices[device].values():
        stat["peak"] = stat["current"]
