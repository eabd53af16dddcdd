"""The allocators' own figures beside what the tensors hold, device by device.

For each device: tensors seen - memory from elsewhere + rounding + not reachable from Python = allocated <= reserved <=
used on the device by all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .. import _native
from .._native import Storage
from ..engine import following
from ..tensors.census import Census

#: The caching allocators of CUDA and XPU hand out multiples of this many bytes.
GRANULE = 512
_CACHING = ("cuda", "xpu")


@dataclass(frozen=True)
class Level:
    """One device's memory breakdown, in bytes; None where PyTorch or the device does not say.

    ``seen``: storages of live tensors, each once. ``saved``: those of them that autograd alone holds. ``elsewhere``:
    those whose memory is not from PyTorch's allocator (NumPy, shared memory, files, other processes). ``rounding``:
    what the allocator's blocks are larger than the storages in them.
    """

    device: str
    seen: int
    saved: int
    elsewhere: int
    rounding: int
    allocated: int | None = None
    reserved: int | None = None
    used: int | None = None

    @property
    def unreachable(self) -> int | None:
        """Allocated bytes that no tensor found accounts for: what C++ alone holds."""
        if self.allocated is None:
            return None
        return max(0, self.allocated - (self.seen - self.elsewhere + self.rounding))


@dataclass(frozen=True)
class _Counters:
    allocated: int | None = None
    reserved: int | None = None
    used: int | None = None


def measure_levels(torch: Any, census: Census) -> dict[str, Level]:
    """The memory breakdown of each device that has tensors, or memory of the allocator.

    Sets each storage's ``block``.
    """
    unused: dict[str, list[Storage]] = {name: [] for name in _devices_in_use(torch)}
    by_device = unused | census.by_device()
    return {name: _measure(torch, name, found, census.saved) for name, found in by_device.items()}


def _measure(torch: Any, name: str, storages: list[Storage], saved: set[int]) -> Level:
    counters = _counters(torch, name)
    _set_blocks(torch, name, storages, counters.allocated)
    sums = _native.sum_storages(storages)
    alone = sum(s.counted for s in storages if s.tensors and id(s.tensors[0]) in saved) if saved else 0
    seen, elsewhere = sums.counted_bytes, sums.without_block_bytes
    rounding = sums.block_bytes - (seen - elsewhere)
    return Level(name, seen, alone, elsewhere, rounding, counters.allocated, counters.reserved, counters.used)


def _devices_in_use(torch: Any) -> list[str]:
    if not torch.cuda.is_initialized():
        return []
    count: int = torch.cuda.device_count()
    return [f"cuda:{i}" for i in range(count) if torch.cuda.memory_reserved(i)]


def _counters(torch: Any, name: str) -> _Counters:
    kind, _, index = name.partition(":")
    if kind == "cpu":
        return _Counters(_native.levels(0).allocated_bytes if following.cpu_is_followed() else None)
    module = getattr(torch, kind, None)
    if kind == "mps":
        return _Counters(_ask(module, "current_allocated_memory"), _ask(module, "driver_allocated_memory"))
    if kind not in _CACHING or not _ask(module, "is_initialized") or os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        return _Counters()
    allocated, reserved = (_ask(module, f, int(index)) for f in ("memory_allocated", "memory_reserved"))
    return _Counters(allocated, reserved, _used(module, int(index)))


def _ask(module: Any, function: str, *args: int) -> Any:
    try:
        return getattr(module, function)(*args)
    except Exception:  # not in this version, or not for this device
        return None


def _used(module: Any, index: int) -> int | None:
    memory = _ask(module, "mem_get_info", index)
    return None if memory is None else memory[1] - memory[0]


def _set_blocks(torch: Any, name: str, storages: list[Storage], allocated: int | None) -> None:
    kind, _, index = name.partition(":")
    if kind == "cpu" and following.cpu_is_followed():
        _native.set_cpu_blocks(storages)
    elif kind in _CACHING:
        _set_rounded(torch, kind, int(index), storages, allocated)
    else:
        for storage in storages:
            storage.block = storage.counted


def _set_rounded(torch: Any, kind: str, index: int, storages: list[Storage], allocated: int | None) -> None:
    """Blocks as the allocator rounds at least.

    Where their sum is not what it counts, it is asked for each block: large ones may be larger, some memory may be from
    elsewhere.
    """
    total = 0
    for storage in storages:
        storage.block = -(-storage.nbytes // GRANULE) * GRANULE if storage.counted else 0
        total += storage.block
    blocks = None if total == allocated or kind != "cuda" else _allocators_blocks(torch, index)
    for storage in storages if blocks is not None else ():
        storage.block = blocks.get(storage.address, 0) if storage.counted else 0  # type: ignore[union-attr]


def _allocators_blocks(torch: Any, index: int) -> dict[int, int] | None:
    """Size of each block in use, by address; None where the allocator does not show them."""
    try:
        segments = _segments(torch)
        found = {}
        for segment in segments:
            if segment["device"] != index:
                continue
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    found[block.get("address", address)] = block["size"]
                address += block["size"]
        return found
    except Exception:  # another allocator backend
        return None


def _segments(torch: Any) -> Any:
    try:
        return torch.cuda.memory_snapshot(include_traces=False)
    except TypeError:  # a version that always gives the traces as well
        return torch.cuda.memory_snapshot()
