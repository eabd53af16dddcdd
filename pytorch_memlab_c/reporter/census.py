"""All live tensors by the storage that they share: each storage once, with its bytes.

A census holds the tensors themselves. It is made, read and dropped inside one report.
"""

from __future__ import annotations

import functools
import operator
import sys
from itertools import compress
from typing import Any

from .. import _native
from . import graph
from .reading import address_reader, components, is_tensor, script_tensors, tangents

#: Tensors that are asked together: so many that the asking costs little, so few that they stay in the processor's cache.
_AT_ONCE = 500


class Storage:
    """One storage: its bytes, where they are, and the tensors on it. `tensors` may be empty: a storage alone.

    `counted`: the bytes that no other storage holds as well (memory passed on through DLPack has two storages).
    `block`: bytes of the allocator's block, 0 if the memory is not PyTorch's allocator's. `bare`: the storage itself if
    no tensor has it.
    """

    __slots__ = ("key", "device", "nbytes", "address", "tensors", "counted", "block", "bare")

    def __init__(self, key: int, device: str, nbytes: int, address: int, tensors: list[Any]) -> None:
        self.key = key
        self.device = device
        self.nbytes = self.counted = nbytes
        self.address = address
        self.tensors = tensors
        self.block = 0
        self.bare: Any = None


class _DeviceNames(dict[Any, str]):
    """The text of each `torch.device`, made once."""

    def __missing__(self, device: Any) -> str:
        name = self[device] = str(device)
        return name


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
        self._address_of = address_reader(torch)
        self._devices = _DeviceNames()
        self._known: set[int] = set()
        self._parts: list[tuple[Any, str, Any]] = []
        self._roots: list[Any] = []
        self._held: list[list[Any]] = []
        self._by_device: dict[str, list[Storage]] | None = None

    def device_name(self, device: Any) -> str:
        return self._devices[device]

    def take(self) -> None:
        """Find and enter everything that is alive now."""
        torch = self._torch
        plain, bare, nodes, scripts = _walk(torch)
        self._known.update(map(id, plain))
        self._held.append(plain)
        self._enter_all(plain)
        self._enter_scripts(scripts)
        self._enter_parts()
        self._roots += nodes
        self._enter_saved()
        self._enter_parts()
        keys = _native.try_each(torch._C.StorageBase._cdata, bare)
        for storage in (storage for key, storage in zip(keys, bare) if key not in self.storages):
            self._enter_bare(storage)
        self._settle_overlaps()

    def _enter_all(self, tensors: list[Any]) -> None:
        for start in range(0, len(tensors), _AT_ONCE):
            self._enter_some(tensors[start : start + _AT_ONCE])

    def _enter_some(self, tensors: list[Any]) -> None:
        """Enter tensors that are new here. Each question is put to all of them at once: with many tensors that is where
        the time goes. What a tensor refuses to answer is None."""
        base, each = self._torch._C.TensorBase, _native.try_each
        nodes = each(base.grad_fn, tensors)
        roots = [node for node in nodes if node is not None]
        self._roots += roots
        self._add_gradients(tensors, nodes if roots else [])
        handles = each(base.untyped_storage, tensors)
        keys = each(self._torch._C.StorageBase._cdata, handles)
        opened = self._open_storages(keys, tensors, handles)
        if len(opened) < len(keys):
            self._join_storages(opened, keys, tensors)
        self._parts += tangents(self._torch, tensors)
        for special in (base.is_nested, base.is_quantized):
            for tensor in compress(tensors, each(special, tensors)):
                self._add_components(tensor)

    def _join_storages(self, opened: dict[Any, int], keys: list[Any], tensors: list[Any]) -> None:
        """Add the tensors for which no storage was opened to those that they share, if they have one."""
        for i, key in enumerate(keys):
            if key is None:
                self._enter_unusual(tensors[i])
            elif opened.get(key) != i:
                self.storages[key].tensors.insert(-1, tensors[i])  # before the one it was opened with, which came later

    def _add_gradients(self, tensors: list[Any], nodes: list[Any]) -> None:
        """Of leaves, and of others that retain theirs; asking any other one is worth a warning to PyTorch. Without nodes
        all are leaves."""
        base = self._torch._C.TensorBase
        asked = [t for t, node in zip(tensors, nodes) if node is None or base.retains_grad.__get__(t)]
        asked = asked if nodes else tensors
        gradients = _native.try_each(base.grad, asked)
        self._parts += ((t, ".grad", g) for t, g in zip(asked, gradients) if g is not None)

    def _open_storages(self, keys: list[Any], tensors: list[Any], handles: list[Any]) -> dict[Any, int]:
        """Enter the storages that are new: by their keys, which of the tensors each was opened with. The lists belong
        together; a key of None: that tensor has no storage."""
        known = self.storages
        where = dict(zip(keys, range(len(keys))))
        where.pop(None, None)
        for key in known.keys() & where.keys():
            del where[key]
        if len(where) < len(keys):
            tensors = [tensors[i] for i in where.values()]
            handles = [handles[i] for i in where.values()]
        each, kind = _native.try_each, self._torch._C.StorageBase
        devices = list(map(self._devices.__getitem__, each(kind.device, handles)))
        addresses = [address or 0 for address in each(self._address_of, tensors)]
        sizes = each(kind.nbytes, handles)
        self._open_without_memory(devices, addresses, sizes, tensors)
        known.update(zip(where, map(Storage, where, devices, sizes, addresses, [[tensor] for tensor in tensors])))
        return where

    def _open_without_memory(
        self, devices: list[str], addresses: list[int], sizes: list[Any], tensors: list[Any]
    ) -> None:
        """A size without an address is that of a tensor which stands for others."""
        for i in (i for i, address in enumerate(addresses) if not address) if 0 in addresses else ():
            if sizes[i] and devices[i] != "meta":
                self._add_components(tensors[i])
            sizes[i] = 0

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

    def _enter_scripts(self, modules: list[Any]) -> None:
        """Parameters and buffers of TorchScript modules: a loaded one has them without Python."""
        new = []
        for name, tensor in (found for module in modules for found in script_tensors(self._torch, module)):
            self.labels.setdefault(id(tensor), (None, f"ScriptModule.{name}"))
            if id(tensor) not in self._known:
                self._known.add(id(tensor))
                new.append(tensor)
        self._held.append(new)
        self._enter_all(new)

    def _enter_saved(self) -> None:
        if graph.backward_runs():
            self.graph_skipped = bool(self._roots)
            return
        roots, self._roots = self._roots, []
        alone = _references_when_alone(self._torch) if roots else 0
        new: list[Any] = []
        for name, holder, field in graph.saved_tensors(roots):
            tensor = graph.saved_data(holder, field)
            if not is_tensor(self._torch, tensor):
                continue
            if id(tensor) not in self._known:
                self._known.add(id(tensor))
                self._label_saved(name, tensor)
                new.append(tensor)
            elif id(tensor) not in self.labels and _references(tensor) <= alone:
                self._label_saved(name, tensor)
        self._held.append(new)
        self._enter_all(new)
        self._drop_saved_aliases()

    def _label_saved(self, name: str, tensor: Any) -> None:
        self.labels[id(tensor)] = (None, name)
        self.saved.add(id(tensor))

    def _drop_saved_aliases(self) -> None:
        """What autograd holds of a storage that lives anyway is no row of its own."""
        for storage in self.storages.values() if self.saved else ():
            others = [tensor for tensor in storage.tensors if id(tensor) not in self.saved]
            storage.tensors = others or storage.tensors[:1]

    def _enter_bare(self, storage: Any) -> None:
        """A storage that has no tensor any more."""
        try:
            address = storage.data_ptr()
            nbytes = storage.nbytes() if address else 0
            known = Storage(storage._cdata, self.device_name(storage.device), nbytes, address, [])
        except Exception:  # a fake or wrapper tensor's: no memory
            return
        known.bare = storage
        self.storages[known.key] = known

    def _settle_overlaps(self) -> None:
        """Count bytes once that several storages have (DLPack, `torch.from_numpy` of one array twice)."""
        for storages in self.by_device().values():
            storages.sort(key=operator.attrgetter("address"))
            begins = [storage.address for storage in storages]
            ends = map(operator.add, begins, [storage.nbytes for storage in storages])
            if not all(map(operator.le, ends, begins[1:])):
                _count_once(storages)

    def by_device(self) -> dict[str, list[Storage]]:
        """The storages of each device, when all are entered."""
        if self._by_device is None:
            storages = self.storages.values()
            names = {storage.device for storage in storages}
            self._by_device = {name: [s for s in storages if s.device == name] for name in names}
        return self._by_device


def _count_once(storages: list[Storage]) -> None:
    storages.sort(key=lambda storage: (storage.address, -storage.nbytes))
    end = 0
    for storage in storages:
        begin = storage.address
        if begin < end and begin:
            storage.counted = max(0, begin + storage.nbytes - end)
        end = max(end, begin + storage.nbytes)


def _walk(torch: Any) -> tuple[list[Any], ...]:
    """Live tensors, storages, nodes of autograd graphs, and TorchScript modules."""
    parents = [torch._C.TensorBase, torch._C.StorageBase, torch.jit.ScriptModule]
    found = _native.walk_instances((*parents, torch._C._FunctionBase, "next_functions"))
    kinds = list(map(type, found))
    tensors, storages, scripts = (_of_kind(found, kinds, parent) for parent in parents)
    if len(tensors) + len(storages) + len(scripts) == len(found):
        return tensors, storages, [], scripts
    others = {kind for kind in set(kinds) if not issubclass(kind, tuple(parents))}
    return tensors, storages, list(compress(found, map(others.__contains__, kinds))), scripts


def _of_kind(found: list[Any], kinds: list[type], parent: type) -> list[Any]:
    """Those whose type derives from `parent`: often all of them, or none."""
    there = set(kinds)
    wanted = {kind for kind in there if issubclass(kind, parent)}
    if len(wanted) == len(there):
        return found
    return list(compress(found, map(wanted.__contains__, kinds))) if wanted else []


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
