"""What a program allocates past the counters: a report without bytes says why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import ModuleType

from ..data.record_types import FunctionRecord
from ..data.tables import allocating_devices
from ..engine import following
from ..render.text import readable_size

#: PyTorch pins a few bytes of its own.
_WORTH_A_NOTE = 1 << 20


def uncounted(functions: Iterable[FunctionRecord]) -> Iterator[str]:
    """Sentences about memory that no figure of these functions contains."""
    torch = following.torch_module()
    if torch is None:
        if any(function.ran for function in functions) and not any(map(allocating_devices, functions)):
            yield "the program has not imported PyTorch, and only PyTorch's allocators are counted"
    elif torch.cuda.is_initialized():
        yield from _past_the_counters(torch)


def _past_the_counters(torch: ModuleType) -> Iterator[str]:
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        yield "PYTORCH_NO_CUDA_MEMORY_CACHING is set: PyTorch counts no CUDA memory then, and so its figures are 0 here"
    if torch.cuda.memory.get_allocator_backend() == "pluggable":
        yield (
            "a CUDAPluggableAllocator is in use: PyTorch counts nothing that it allocates, "
            "and so its figures are 0 here"
        )
    pinned = _most_pinned(torch)
    if pinned >= _WORTH_A_NOTE:
        size = readable_size(pinned)
        yield f"pinned host memory is not counted here: {size} at most, by torch.cuda.host_memory_stats()"


def _most_pinned(torch: ModuleType) -> int:
    """The peak of pinned bytes so far; 0 where this version of PyTorch does not count them."""
    stats: dict[str, int] = getattr(torch.cuda, "host_memory_stats", dict)()
    return stats.get("active_bytes.peak", 0)
