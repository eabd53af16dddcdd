"""All live tensors by the storage that they share: each storage once, with its bytes.

A census holds the tensors themselves. It is made, read and dropped inside one report.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from typing import Any

from .. import _native
from . import graph
from .reading import components, data_address, is_tensor


class Storage:
    """One storage: its bytes, where they are, and the tensors on it. `tensors` may be empty: a storage alone.

    `counted`: the bytes that no other storage holds as well (memory passed on through DLPack has two storages).
    `block`: bytes of the allocator's block, 0 if the memory is not PyTorch's allocator's. `bare`: the storage itself if
    no tensor has it.
    """

    __slots__ = ("key", "device", "nbytes", "address", "tensors", "counted", "block", "bare")

    def __init__(self, key: int, device: str, nbytes: int, address: int) -> None:
        self.key = key
        self.device = device
        self.nbytes = self.counted = nbytes
        self.address = address
        self.tensors: list[Any] = []
        self.block = 0
        self.bare: Any = None


class Census:
    """The live tensors. `labels`: (whose, what) of tensors that are part of another (`.grad`, `.values`) or of a graph.
    `kinds`: the types of those others. `saved`: what autograd alone holds. All by the tensors' identities."""

    def __init__(self, torch: Any) -> None:
        self.storages: dict[int, Storage] = {}
        self.without_storage: list[Any] = []
        self.labels: dict[int, tuple[int | None, str]] = {}
        self.kinds: dict[int, str] = {}
        self.saved: set[int] = set()
        self.graph_skipped = False
        self._torch = torch
        self._devices: dict[Any, str] = {}
        self._known: set[int] = set()
        self._parts: list[tuple[Any, str, Any]] = []
        self._roots: list[Any] = []
        self._held: list[list[Any]] = []

    def device_name(self, device: Any) -> str:
        name = self._devices.get(device)
        if name is None:
            name = self._devices[device] = str(device)
        return name

    def take(self) -> None:
        """Find and enter everything that is alive now."""
        torch = self._torch
        plain, bare, contexts = _walk(torch)
        self._known.update(map(id, plain))
        self._held.append(plain)
        self._enter_all(plain)
        self._enter_parts()
        self._roots += contexts
        self._enter_saved()
        self._enter_parts()
        for storage in bare:
            self._enter_bare(storage)
        self._settle_overlaps()

    def _enter_all(self, tensors: Iterable[Any]) -> None:
        """The hot loop: what every tensor is asked, and no more. Anything unusual goes to `_enter_unusual`."""
        base = self._torch._C.TensorBase
        grad_fn, grad, retains = base.grad_fn.__get__, base.grad.__get__, base.retains_grad.__get__
        is_nested, is_quantized, untyped = base.is_nested.__get__, base.is_quantized.__get__, base.untyped_storage
        storages, roots = self.storages, self._roots
        for tensor in tensors:
            try:
                node = grad_fn(tensor)
                if node is not None:
                    roots.append(node)
                gradient = grad(tensor) if node is None or retains(tensor) else None
                if gradient is not None:
                    self._parts.append((tensor, ".grad", gradient))
                storage = untyped(tensor)
                known = storages.get(storage._cdata)
                if known is None:
                    known = self._new_storage(storage, tensor)
                known.tensors.append(tensor)
                if is_nested(tensor) or is_quantized(tensor) or (not known.address and known.device != "meta"):
                    self._add_components(tensor)
            except Exception:
                self._enter_unusual(tensor)

    def _new_storage(self, storage: Any, tensor: Any) -> Storage:
        address = data_address(self._torch, tensor)
        nbytes = storage.nbytes() if address else 0
        known = Storage(storage._cdata, self.device_name(storage.device), nbytes, address)
        self.storages[known.key] = known
        return known

    def _enter_unusual(self, tensor: Any) -> None:
        """A tensor without a storage, or one that does not answer: its components count, or it counts as nothing."""
        if self._add_components(tensor) == 0:
            self.without_storage.append(tensor)

    def _add_components(self, tensor: Any) -> int:
        try:
            found = components(self._torch, tensor)
        except Exception:  # a kind that is not known here
            return 0
        self._parts += ((tensor, f".{name}", part) for name, part in found)
        return len(found)

    def _enter_parts(self) -> None:
        """Gradients and components, which Python may not have touched before, and their own in turn."""
        while self._parts:
            parts, self._parts = self._parts, []
            new = []
            for whose, what, part in parts:
                self.labels.setdefault(id(part), (id(whose), what))
                self.kinds[id(whose)] = type(whose).__name__
                if id(part) not in self._known:
                    self._known.add(id(part))
                    new.append(part)
            self._held.append(new)
            self._enter_all(new)

    def _enter_saved(self) -> None:
        if graph.backward_runs():
            self.graph_skipped = bool(self._roots)
            return
        roots, self._roots = self._roots, []
        alone = _references_when_alone(self._torch) if roots else 0
        for name, holder, field in graph.saved_tensors(roots):
            tensor = graph.saved_data(holder, field)
            if not is_tensor(self._torch, tensor):
                continue
            if id(tensor) not in self._known:
                self._known.add(id(tensor))
                self._label_saved(name, tensor)
                self._enter_all([tensor])
            elif id(tensor) not in self.labels and _references(tensor) <= alone:
                self._label_saved(name, tensor)
        self._drop_saved_aliases()

    def _label_saved(self, name: str, tensor: Any) -> None:
        self.labels[id(tensor)] = (None, name)
        self.saved.add(id(tensor))

    def _drop_saved_aliases(self) -> None:
        """What autograd holds of a storage that lives anyway is no row of its own."""
        for storage in self.storages.values() if self.saved else ():
            others = [tensor for tensor in storage.tensors if id(tensor) not in self.saved]
            if others:
                storage.tensors = others

    def _enter_bare(self, storage: Any) -> None:
        """A storage that may have no tensor any more."""
        try:
            if storage._cdata not in self.storages:
                address = storage.data_ptr()
                nbytes = storage.nbytes() if address else 0
                known = Storage(storage._cdata, self.device_name(storage.device), nbytes, address)
                known.bare = storage
                self.storages[known.key] = known
        except Exception:  # a fake or wrapper tensor's: no memory
            return

    def _settle_overlaps(self) -> None:
        """Count bytes once that several storages have (DLPack, `torch.from_numpy` of one array twice)."""
        by_device: dict[str, list[Storage]] = {}
        for storage in self.storages.values():
            if storage.nbytes:
                by_device.setdefault(storage.device, []).append(storage)
        for storages in by_device.values():
            storages.sort(key=_by_address)
            end = 0
            for storage in storages:
                if storage.address < end:
                    storage.counted = max(0, storage.address + storage.nbytes - end)
                end = max(end, storage.address + storage.nbytes)


def _by_address(storage: Storage) -> tuple[int, int]:
    return storage.address, -storage.nbytes


def _walk(torch: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Live tensors, storages, and contexts of custom autograd functions."""
    base, storage = torch._C.TensorBase, torch._C.StorageBase
    tensors: list[Any] = []
    storages: list[Any] = []
    contexts: list[Any] = []
    for found in _native.walk_instances((base, storage, torch._C._FunctionBase)):
        kind = type(found)
        (tensors if issubclass(kind, base) else storages if issubclass(kind, storage) else contexts).append(found)
    return tensors, storages, contexts


def _references(tensor: Any) -> int:
    return sys.getrefcount(tensor)


@functools.cache
def _references_when_alone(torch: Any) -> int:
    """What `_references` gives for a tensor of the census that only C++ holds besides: versions of PyTorch differ in who
    owns the Python object. A view's base, without memory, stands for it."""
    view = torch.empty(0, device="meta").view(-1)
    walked = [view._base]
    listed = [walked[0]]
    tensor = view._base
    return _references(tensor) if len(listed) == len(walked) else 0
