"""What a call of `yield_memory()` has lent, and what it has left on the devices, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..render.text import readable_size
from .lending import LentStorage
from .selection import Kept

_BLOCK = 512  # bytes: PyTorch's CUDA allocator rounds up to it


@dataclass(frozen=True)
class YieldedMemory:
    """Bytes by device name (`cuda:0`).

    `lent_bytes`: of the storages that were lent, `storages` in number. `kept_bytes`: what PyTorch's allocator still
    has allocated (`torch.cuda.memory_allocated()`) afterwards. `reasons`: why something stayed, one sentence a kind.
    """

    storages: int = 0
    lent_bytes: dict[str, int] = field(default_factory=dict)
    kept_bytes: dict[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        lent = ", ".join(f"{readable_size(size)} of {device}" for device, size in self.lent_bytes.items()) or "nothing"
        kept = ", ".join(f"{readable_size(size)} of {device}" for device, size in self.kept_bytes.items())
        text = f"lent {lent} ({self.storages} storages)"
        if kept:
            text += f"; still allocated: {kept}"
        return "; ".join([text, *self.reasons])


def summarize(torch: Any, entries: list[LentStorage], kept: list[Kept], unpooled: set[int]) -> YieldedMemory:
    """`unpooled`: addresses of kept storages that are no memory of PyTorch's allocator."""
    lent: Counter[str] = Counter()
    for entry in entries:
        lent[str(entry.device)] += entry.nbytes
    allocated = {i: torch.cuda.memory_allocated(i) for i in range(torch.cuda.device_count())}
    still = {f"cuda:{i}": size for i, size in allocated.items() if size}
    reasons = [*_known(kept), *_unknown(allocated, [one for one in kept if one.address not in unpooled])]
    return YieldedMemory(len(entries), dict(sorted(lent.items())), still, tuple(reasons))


def _known(kept: Iterable[Kept]) -> list[str]:
    groups: dict[tuple[int, str], list[int]] = {}
    for one in kept:
        groups.setdefault((one.device, one.reason), []).append(one.nbytes)
    return [
        f"{len(sizes)} storages ({readable_size(sum(sizes))}) stay on cuda:{device}: {reason}"
        for (device, reason), sizes in sorted(groups.items())
    ]


def _unknown(allocated: dict[int, int], kept: Iterable[Kept]) -> list[str]:
    """What is still allocated beyond the storages that were left alone."""
    blocks = {(one.device, one.address): -(-one.nbytes // _BLOCK) * _BLOCK for one in kept}
    lines = []
    for device, size in allocated.items():
        rest = size - sum(nbytes for (owner, _), nbytes in blocks.items() if owner == device)
        if rest > 0:
            lines.append(
                f"{readable_size(rest)} stay on cuda:{device}: no Python object leads to them (C++ code holds them, "
                f"such as DistributedDataParallel's buckets, or the cache of an autocast region)"
            )
    return lines
