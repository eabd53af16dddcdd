"""What Python's side knows of PyTorch's binaries, with the versions in which it was seen.

All else is in native/base/torch_abi.h. Sizes are in bytes.
"""

from __future__ import annotations

#: `c10::cuda::device_count()`, of libc10_cuda. Seen in 2.6.0, 2.9.1 and 2.14.1.
DEVICE_COUNT = "_ZN3c104cuda12device_countEv"

#: What the caching allocator takes from the device for a request that no segment has room for: kSmallSize,
#: kSmallBuffer, kMinLargeAlloc, kLargeBuffer and kRoundLarge of c10/cuda/CUDACachingAllocator. Seen in 2.1.2, 2.6.0,
#: 2.9.1 and 2.14.1.
SMALL_REQUEST = 1 << 20
SMALL_SEGMENT = 2 << 20
LARGE_REQUEST = 10 << 20
MIDDLE_SEGMENT = 20 << 20
LARGE_UNIT = 2 << 20


def segment_for(asked: int) -> int:
    """The bytes of the segment that is made for a request of ``asked`` bytes."""
    if asked <= SMALL_REQUEST:
        return SMALL_SEGMENT
    if asked < LARGE_REQUEST:
        return MIDDLE_SEGMENT
    return -(-asked // LARGE_UNIT) * LARGE_UNIT
