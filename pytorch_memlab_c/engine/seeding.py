"""What lives already when following begins: bytes on accelerators, and CPU storages one by one."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..tensors.census import Census
from ..tensors.reading import quietly


def seed_accelerators(torch: Any) -> None:
    """Enter what PyTorch's allocator statistics say of each CUDA device, if CUDA has been used."""
    if not torch.cuda.is_initialized():
        return
    for index in range(min(torch.cuda.device_count(), _native.MAX_DEVICES - 1)):
        stats = torch.cuda.memory_stats(index)
        names = ("active_bytes", "allocated_bytes", "reserved_bytes")
        levels = [stats.get(f"{name}.all.current", 0) for name in names]
        if any(levels):
            _native.seed_device(1 + index, *levels)


def seed_cpu(torch: Any) -> None:
    """Enter the CPU storages that live already, each once, in bytes.

    They are those that Python can reach through its tensors, their autograd graphs and storages. What only C++ or a
    NumPy array holds is not found.
    """
    with quietly(torch):
        census = Census(torch)
        census.take()
        for known in census.by_device().get("cpu", ()):
            storage = known.bare or torch._C.TensorBase.untyped_storage(known.tensors[0])
            if known.nbytes and storage.resizable() and not storage.is_shared():
                _native.seed_cpu(known.address, known.nbytes)
