"""The device that a workload runs on: whether it is there, whether its memory can be measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..data.device_names import CPU, read_device
from ..engine import following

_METER_DEVICES = _native.MAX_DEVICES - 1
ACCELERATORS = ("xpu", "mps")


@dataclass(frozen=True)
class Device:
    """A device that is there. `slot` is the engine's: 0 the CPU, 1 + i the accelerator i."""

    kind: str
    name: str
    slot: int

    def synchronize(self) -> None:
        """Wait for the work that was queued on it."""
        torch = following.torch_module()
        if torch is None or self.kind == "cpu":
            return
        getattr(torch, self.kind).synchronize(*(() if self.kind == "mps" else (self.slot - 1,)))


def find_device(device: Any) -> Device:
    """The device named by a string or a `torch.device`. PyTorch is imported for any but the CPU.

    Raises:
        NotImplementedError: PyTorch, or its support for this kind of device, is missing.
        RuntimeError: the device is not there, or it is no name of a device.
        TypeError: it is neither a string nor a `torch.device`.
    """
    if read_device(device) in ((CPU, None), (CPU, 0)):
        return Device(CPU, CPU, 0)
    torch = _torch(device)
    named = torch.device(device)  # PyTorch knows which names there are
    find = _FINDERS.get(named.type)
    if find is None:
        raise NotImplementedError(
            f"the memory of '{named}' cannot be measured; devices of the kinds {', '.join(_FINDERS)} can"
        )
    return find(torch, named.index)


def _torch(device: Any) -> Any:
    try:
        import torch
    except ImportError as error:
        raise NotImplementedError(f"{device!r} was asked for, but PyTorch is not installed") from error
    return torch


def _find_cpu(torch: Any, index: int | None) -> Device:
    if index not in (None, 0):
        raise RuntimeError(f"cpu:{index} is not there; the CPU is 'cpu'")
    return Device("cpu", "cpu", 0)


def _find_cuda(torch: Any, index: int | None) -> Device:
    if not torch.cuda._is_compiled():
        raise NotImplementedError(f"a CUDA device was asked for, but this PyTorch ({torch.__version__}) has no CUDA")
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        raise NotImplementedError(
            "PYTORCH_NO_CUDA_MEMORY_CACHING is set: without its caching allocator PyTorch counts no CUDA memory"
        )
    count = torch.cuda.device_count()
    if count == 0:
        raise RuntimeError(
            "a CUDA device was asked for, but there is none here; "
            "pytorch_memlab_c.simulate.enable() gives a simulated one"
        )
    if index is None:  # asking for the current one starts CUDA, which a process that forks later must not do
        index = torch.cuda.current_device() if torch.cuda.is_initialized() else 0
    return _numbered("cuda", index, count)


def _find_xpu(torch: Any, index: int | None) -> Device:
    if not (hasattr(torch, "xpu") and torch.xpu._is_compiled()):
        raise NotImplementedError(f"an XPU was asked for, but this PyTorch ({torch.__version__}) has no XPU support")
    if not torch.xpu.is_available():
        raise RuntimeError("an XPU was asked for, but there is none here")
    return _numbered("xpu", torch.xpu.current_device() if index is None else index, torch.xpu.device_count())


def _find_mps(torch: Any, index: int | None) -> Device:
    if not torch.backends.mps.is_built():
        raise NotImplementedError(f"MPS was asked for, but this PyTorch ({torch.__version__}) has no MPS support")
    if not torch.backends.mps.is_available():
        raise RuntimeError("MPS was asked for, but there is no such device here")
    if index not in (None, 0):
        raise RuntimeError(f"mps:{index} is not there; there is one MPS device")
    return Device("mps", "mps", 1)


_FINDERS: dict[str, Callable[[Any, int | None], Device]] = {
    "cpu": _find_cpu,
    "cuda": _find_cuda,
    "xpu": _find_xpu,
    "mps": _find_mps,
}


def _numbered(kind: str, index: int, count: int) -> Device:
    if index >= count:
        there = f"{kind}:0" if count == 1 else f"{kind}:0 to {kind}:{count - 1}"
        raise RuntimeError(f"{kind}:{index} is not there; this process has {there}")
    if index >= _METER_DEVICES:
        raise NotImplementedError(f"{kind}:{index}: the first {_METER_DEVICES} devices can be measured")
    return Device(kind, f"{kind}:{index}", 1 + index)
