"""Which of the storages that were found can be lent; the others stay where they are, and the reason is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .blocks import DeviceBlocks

FOREIGN = "not PyTorch's own memory (shared with another process, by DLPack, or made from a pointer)"
ALIASED = "also used under another storage (by DLPack or from a pointer)"
POOL = "in the private pool of a CUDA graph or a torch.cuda.MemPool"
COPY_ON_WRITE = "a copy-on-write clone"
FIXED = "not resizable"


@dataclass(frozen=True)
class Candidate:
    """A storage with the memory it has. `address`: of its first byte; `stream`: that it was allocated on."""

    storage: Any
    device: int
    address: int
    nbytes: int
    stream: int


@dataclass(frozen=True)
class Kept:
    """A storage that stays on its device."""

    device: int
    address: int
    nbytes: int
    reason: str


def split(torch: Any, storages: Iterable[Any], blocks: DeviceBlocks) -> tuple[list[Candidate], list[Kept]]:
    """CUDA storages that can be lent, and those that cannot. What holds no memory is in neither."""
    ours: list[Candidate] = []
    kept: list[Kept] = []
    for storage in storages:
        device, nbytes = storage.device.index, storage.nbytes()
        reason, address = _examine(torch, storage, nbytes)
        if not address:
            continue
        if reason is None and blocks.in_private_pool(device, address):
            reason = POOL
        if reason is None:
            ours.append(Candidate(storage, device, address, nbytes, blocks.stream(device, address)))
        else:
            kept.append(Kept(device, address, nbytes, reason))
    lent = [one for one in ours if not any(_overlap(one, other) for other in kept)]
    staying = {id(one) for one in ours} - {id(one) for one in lent}
    aliased = [Kept(one.device, one.address, one.nbytes, ALIASED) for one in ours if id(one) in staying]
    return lent, kept + aliased


def _examine(torch: Any, storage: Any, nbytes: int) -> tuple[str | None, int]:
    """Why a storage cannot be lent (None: it can), and the address of its memory (0: it has none)."""
    try:
        if nbytes and torch._C._has_Standard_Deleter(storage._cdata):
            return None if storage.resizable() else FIXED, storage.data_ptr()
        shared = _address_if_copy_on_write(torch, storage) if nbytes else 0
        if shared:
            return COPY_ON_WRITE, shared
        return FOREIGN, storage.data_ptr() if nbytes else 0
    except (
        RuntimeError
    ):  # a wrapper of other tensors, or one whose memory a CUDA graph has taken back: it has no bytes of its own
        return None, 0


def _address_if_copy_on_write(torch: Any, storage: Any) -> int:
    """Asked before `storage.data_ptr()`, which would copy such a storage. 0: it is none."""
    ask = getattr(torch._C, "_is_cow_tensor", None)
    tensor = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return tensor.const_data_ptr() if ask is not None and ask(tensor) else 0


def _overlap(one: Candidate, other: Kept) -> bool:
    same_device = one.device == other.device
    return same_device and one.address < other.address + other.nbytes and other.address < one.address + one.nbytes
