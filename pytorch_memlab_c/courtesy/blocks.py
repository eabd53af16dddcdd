"""The stream of a storage's memory, and whether its pool is private, from PyTorch's CUDA allocator."""

from __future__ import annotations

import bisect
from typing import Any

_SHARED_POOL = (0, 0)


class DeviceBlocks:
    """The allocator's segments now, to be asked for by address.

    Empty where the allocator has no snapshot (`cudaMallocAsync`).
    """

    def __init__(self, torch: Any) -> None:
        try:
            segments = torch.cuda.memory_snapshot()
        except RuntimeError:
            segments = []
        self._segments = sorted(segments, key=lambda segment: (segment["device"], segment["address"]))
        self._starts = [(segment["device"], segment["address"]) for segment in self._segments]

    def _segment(self, device: int, address: int) -> dict[str, Any] | None:
        at = bisect.bisect_right(self._starts, (device, address)) - 1
        segment = self._segments[at] if at >= 0 else None
        if segment is None or segment["device"] != device:
            return None
        return segment if address < segment["address"] + segment["total_size"] else None

    def hold(self, device: int, address: int) -> bool:
        """Whether this is memory of PyTorch's allocator."""
        return self._segment(device, address) is not None

    def stream(self, device: int, address: int) -> int:
        """The handle (`cudaStream_t`) of the stream that the block was allocated on.

        0 is the default stream.
        """
        segment = self._segment(device, address)
        return segment["stream"] if segment else 0

    def in_private_pool(self, device: int, address: int) -> bool:
        """Whether the block belongs to a CUDA graph's pool or to a `torch.cuda.MemPool`."""
        segment = self._segment(device, address)
        return segment is not None and tuple(segment.get("segment_pool_id", _SHARED_POOL)) != _SHARED_POOL
