"""`Courtesy`: what is lent by which object, in which order it is moved out and back, and what is reported."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..engine import following
from ..render.text import readable_size
from . import guard, host_memory
from .blocks import DeviceBlocks
from .lending import LentStorage, undisturbed
from .progress import CopyProgress
from .search import live_storages
from .selection import Candidate, split
from .summary import YieldedMemory, summarize

_HOST_RESERVE = 512 << 20  # bytes that stay free for the rest of the machine

_lock = threading.RLock()
_loans: list[_Loan] = []


@dataclass
class _Loan:
    """What one call has lent. The registry holds it, not the Courtesy object: losing that must not lose the data."""

    owner: weakref.ref[Courtesy]
    entries: list[LentStorage]


class Courtesy:
    """Gives the CUDA memory of all live tensors back to the device, and brings it back.

    As a context manager the memory is lent inside the block. In between, access to the data of a lent tensor, on any
    thread, is a `RuntimeError`. CPU tensors, and new tensors on the GPU, are not affected. No other thread may work
    on CUDA tensors while they are being copied.

    `progress`: show a progress bar (needs tqdm) when more than a second of copying is expected.
    """

    def __init__(self, *, progress: bool = True) -> None:
        self._progress = progress
        self._depth = 0
        self._loans: list[_Loan] = []

    def yield_memory(self) -> YieldedMemory:
        """Move the bytes of all CUDA storages to the host and release them, and PyTorch's cache, to the device.

        Called again while memory is lent, it lends what has come since. Returns what was lent, and what was not and
        why; the latter is also a warning.

        Raises, with nothing changed: `MemoryError` if the host has not enough memory, `RuntimeError` while CUDA
        graphs live, since they replay with the addresses of now.
        """
        return self._yield()

    def restore(self) -> None:
        """Bring back what this object has lent, and what Courtesy objects lent that no longer exist.

        Raises `torch.OutOfMemoryError` if it does not fit the device. Tensors that are back by then can be used, the
        others stay lent with their data on the host; free device memory and call it again.
        """
        torch = following.torch_module()
        with _lock:
            loans = [loan for loan in _loans if loan.owner() in (self, None)]
            if loans:
                _bring_back(torch, loans, self._progress)

    @property
    def lent_bytes(self) -> int:
        """Bytes that this object has lent now."""
        return sum(entry.nbytes for loan in self._loans for entry in loan.entries)

    def __enter__(self) -> Courtesy:
        self._yield()
        self._depth += 1
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._depth -= 1
        if self._depth > 0:
            return
        try:
            self.restore()
        except Exception as failure:
            if error is None:
                raise
            warnings.warn(f"{failure} (after {type(error).__name__} in the block)", RuntimeWarning, stacklevel=2)

    def __del__(self) -> None:
        if self.lent_bytes and not sys.is_finalizing():
            message = "a Courtesy object is gone while memory is lent; Courtesy().restore() brings it back"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _yield(self) -> YieldedMemory:
        torch = following.torch_module()
        if torch is None or not torch.cuda.is_initialized():
            return YieldedMemory()
        with _lock:
            loan = _Loan(weakref.ref(self), [])
            self._loans = [*(loan for loan in self._loans if loan.entries), loan]
            try:
                summary = _lend_all(torch, loan, self._progress)
                if summary.reasons:
                    warnings.warn(str(summary), RuntimeWarning, stacklevel=3)
            except BaseException:  # also where warnings are errors
                _bring_back(torch, [loan], progress=False)
                raise
        return summary


def _lend_all(torch: Any, loan: _Loan, progress: bool) -> YieldedMemory:
    _refuse_graphs(torch)
    with undisturbed(torch):
        lent_already = {entry.key for other in _loans for entry in other.entries}
        found = [storage for storage in live_storages(torch, "cuda") if storage._cdata not in lent_already]
        _wait_for(torch, (storage.device for storage in found))
        blocks = DeviceBlocks(torch)
        candidates, kept = split(torch, found, blocks)
        loan.entries = _copies(torch, candidates, progress)
        _loans.append(loan)
        for entry in loan.entries:
            entry.take()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
    guard.adjust(torch)
    elsewhere = {one.address for one in kept if not blocks.hold(one.device, one.address)}
    return summarize(torch, loan.entries, kept, elsewhere)


def _refuse_graphs(torch: Any) -> None:
    graphs = len(_native.walk_instances(torch.cuda.CUDAGraph))
    if graphs:
        raise RuntimeError(
            f"nothing was lent: {graphs} CUDA graphs live, and they replay with the addresses that tensors have now. "
            "Delete them (torch.compiler.reset() for those of torch.compile), and capture them again after restore()."
        )


def _wait_for(torch: Any, devices: Iterable[Any]) -> None:
    """All streams: the copies are not ordered after their work otherwise."""
    for device in set(devices):
        torch.cuda.synchronize(device)


def _copies(torch: Any, candidates: list[Candidate], progress: bool) -> list[LentStorage]:
    """All bytes on the host before the first is freed, so that a failure changes nothing."""
    total = sum(one.nbytes for one in candidates)
    _refuse_too_much(total)
    bar = CopyProgress(total, "lending GPU memory", progress)
    copies: list[LentStorage] = []
    try:
        for one in sorted(candidates, key=lambda candidate: -candidate.nbytes):  # the speed shows at once
            copies.append(LentStorage(torch, one.storage, one.stream, bar.advance))
        return copies
    except BaseException as error:
        copies.clear()  # the traceback keeps this frame, and would keep them
        if isinstance(error, MemoryError):
            raise _host_is_full(total) from error
        raise
    finally:
        bar.close()


def _refuse_too_much(total: int) -> None:
    available = host_memory.available_bytes()
    if total and available is not None and total > available - _HOST_RESERVE:
        raise _host_is_full(total, f" It has {readable_size(available)}, of which some must stay free.")


def _host_is_full(total: int, detail: str = "") -> MemoryError:
    return MemoryError(
        f"nothing was lent: the host has not enough memory for {readable_size(total)} of tensors.{detail} "
        "Drop tensors that are not needed, or free host memory, and try again."
    )


def _bring_back(torch: Any, loans: list[_Loan], progress: bool) -> None:
    try:
        with undisturbed(torch):
            _give_back(torch, loans, progress)
    finally:
        guard.adjust(torch)


def _give_back(torch: Any, loans: list[_Loan], progress: bool) -> None:
    """The largest first: what is small finds a place in what is left."""
    waiting = sorted(((entry, loan) for loan in loans for entry in loan.entries), key=lambda pair: -pair[0].nbytes)
    _wait_for(torch, (entry.device for entry, _ in waiting if entry.device.type == "cuda"))
    bar = CopyProgress(sum(entry.nbytes for entry, _ in waiting), "restoring GPU memory", progress)
    done: set[int] = set()
    try:
        for entry, _ in waiting:
            entry.give(bar.advance)
            done.add(id(entry))
    except torch.cuda.OutOfMemoryError as error:
        rest = [entry for entry, _ in waiting if id(entry) not in done]
        raise torch.cuda.OutOfMemoryError(_does_not_fit(rest, len(done), error)) from error
    finally:
        bar.close()
        for loan in loans:
            loan.entries = [entry for entry in loan.entries if id(entry) not in done]
        _loans[:] = [loan for loan in _loans if loan.entries]


def _does_not_fit(rest: list[LentStorage], done: int, error: Exception) -> str:
    size = readable_size(sum(entry.nbytes for entry in rest))
    return (
        f"restore() found no room on {rest[0].device}: {done} storages are back, {len(rest)} storages ({size}) are "
        f"still lent, and their data is safe on the host. Free memory on the device, then call restore() again. "
        f"({error})"
    )
