"""One storage's bytes: to the host and off the device, and back into the same storage.

A storage is what all aliases of its bytes share (views, tied weights, autograd's saved tensors), so it is emptied and
filled in place; no tensor, version counter or graph is touched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from . import guard

CHUNK = 64 << 20  # bytes copied in one go


class LentStorage:
    """The bytes of a storage, on the host. It keeps neither the storage nor its tensors alive.

    `stream`: handle of the CUDA stream whose memory the storage had; it gets memory of the same one again, since its
    uses there are ordered by that stream alone.
    """

    def __init__(self, torch: Any, storage: Any, stream: int, advance: Callable[[int], None]) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self.nbytes: int = storage.nbytes()
        self.device = storage.device
        self._stream = stream
        self._torch = torch
        self._weak = StorageWeakRef(storage)
        self._host = _host_storage(torch, self.nbytes)
        self._emptied = False
        copy_bytes(torch, self._host, storage, advance)

    @property
    def key(self) -> int:
        """The storage's `_cdata`, which no other storage has while this object lives."""
        key: int = self._weak.cdata
        return key

    def take(self) -> None:
        """Free the storage's device bytes, if it still lives. From now on, access to its data is an error."""
        storage = self._storage()
        self._emptied = True  # first: what an interrupt leaves half done, `give` puts right
        if storage is not None:
            guard.empty(self._torch, storage)

    def give(self, advance: Callable[[int], None]) -> None:
        """Put the bytes back, if the storage still lives.

        Raises `torch.OutOfMemoryError`, with nothing changed, if they do not fit.
        """
        storage = self._storage() if self._emptied else None
        if storage is not None:
            guard.fill(
                self._torch, storage, self._allocate, lambda to: copy_bytes(self._torch, to, self._host, advance)
            )
        else:
            guard.forget(self.key)
            advance(self.nbytes)

    def _storage(self) -> Any:
        return self._torch.UntypedStorage._new_with_weak_ptr(self._weak.cdata)

    def _allocate(self, storage: Any) -> Any:
        with _allocating_on(self._torch, self.device, self._stream):
            if storage is None:
                return self._torch.UntypedStorage(self.nbytes, device=self.device)
            storage.resize_(self.nbytes)
            return storage


def _host_storage(torch: Any, nbytes: int) -> Any:
    """Pageable memory: pinned memory is rounded up to powers of two, and PyTorch would keep it afterwards."""
    try:
        return torch.UntypedStorage(nbytes, device="cpu")
    except RuntimeError as error:
        raise MemoryError(f"the host gave no {nbytes} bytes") from error


def copy_bytes(torch: Any, target: Any, source: Any, advance: Callable[[int], None]) -> None:
    """Copy a storage into another of its size, in chunks. It waits for each, so the bytes are there when it returns."""
    to, origin = _as_bytes(torch, target), _as_bytes(torch, source)
    for start in range(0, to.numel(), CHUNK):
        stop = min(start + CHUNK, to.numel())
        to[start:stop].copy_(origin[start:stop])
        advance(stop - start)


def _as_bytes(torch: Any, storage: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


@contextlib.contextmanager
def _allocating_on(torch: Any, device: Any, stream: int) -> Iterator[None]:
    """Memory of that stream; only the allocation happens there, so the stream itself need not exist any more."""
    if device.type != "cuda":
        yield
        return
    default = torch.cuda.default_stream(device)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device) if stream else default):
        yield


@contextlib.contextmanager
def undisturbed(torch: Any) -> Iterator[None]:
    """PyTorch without the program's modes and `__torch_function__`, and recording no gradients."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.no_grad():
        yield
