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
from .._native import Storage
from . import graph
from .reading import address_reader, components, is_tensor, script_tensors, tangents

#: Tensors that are asked together: so many that asking costs little, so few that they stay in the processor's cache.
_AT_ONCE = 500


class _StoragesByDevice(dict[Any, list[Storage]]):
    """The storages on each `torch.device`: those of equal names are one list in `by_name`."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[Storage]] = {}

    def __missing__(self, device: Any) -> list[Storage]:
        storages = self[device] = self.by_name.setdefault(str(device), [])
        return storages


class Census:
    """The live tensors.

    `labels`: (whose, what) of tensors that are part of another (`.grad`, `.values`) or of a graph. `kinds`: the types
    of those others. `saved`: what autograd alone holds. All by the tensors' identities. `contexts`: the `ctx` objects
    of autograd functions. `nodes`: other nodes of graphs that Python holds.
    """

    def __init__(self, torch: Any) -> None:
        self.storages: dict[int, Storage] = {}
        self.without_storage: list[Any] = []
        self.labels: dict[int, tuple[int | None, str]] = {}
        self.kinds: dict[int, str] = {}
        self.saved: set[int] = set()
        self.contexts: list[Any] = []
        self.nodes: list[Any] = []
        self.graph_skipped = False
        self._torch = torch
        base, kind = torch._C.TensorBase, torch._C.StorageBase
        self._questions = (base.untyped_storage, kind._cdata, kind.device, address_reader(torch), kind.nbytes)
        self._devices = _StoragesByDevice()
        self._parts: list[tuple[Any, str, Any]] = []
        self._roots: list[Any] = []
        self._held: list[list[Any]] = []

    @functools.cached_property
    def _known(self) -> set[int]:
        """The identities of all tensors that are held: needed where tensors lead to others."""
        return {id(tensor) for tensors in self._held for tensor in tensors}

    @property
    def held(self) -> list[list[Any]]:
        """All tensors, in lists."""
        return self._held

    @property
    def tensors(self) -> set[int]:
        """The identities of all of them."""
        return self._known

    def take(self) -> None:
        """Find and enter everything that is alive now."""
        torch = self._torch
        parents = (torch._C.TensorBase, torch._C.StorageBase, torch.jit.ScriptModule)
        tensors, bare, scripts, contexts, nodes = _native.walk_kinds(*parents, torch._C._FunctionBase, "next_functions")
        self._held.append(tensors)
        self._enter_all(tensors)
        self._enter_scripts(scripts)
        self._enter_parts()
        self.contexts, self.nodes = contexts, nodes
        self._roots += contexts + nodes
        self._enter_saved()
        self._enter_parts()
        self._enter_bare(bare)
        for storages in self._devices.by_name.values():
            _native.count_once(storages)

    def _enter_all(self, tensors: list[Any]) -> None:
        for start in range(0, len(tensors), _AT_ONCE):
            self._enter_some(tensors[start : start + _AT_ONCE])

    def _enter_some(self, tensors: list[Any]) -> None:
        """Enter tensors that are new here. What a tensor refuses to answer is None."""
        base = self._torch._C.TensorBase
        without, unbacked = _native.enter_tensors(tensors, self.storages, self._devices, self._questions)
        for tensor in without:
            self._enter_unusual(tensor)
        for tensor in unbacked:
            self._enter_unbacked(tensor)
        nodes, nested, quantized = _native.find_answers(tensors, base.grad_fn, base.is_nested, base.is_quantized)
        self._roots += [node for _, node in nodes]
        self._add_gradients(tensors, {id(tensor) for tensor, _ in nodes})
        self._parts += tangents(self._torch, tensors)
        for tensor, _ in nested + quantized:
            self._add_components(tensor)

    def _add_gradients(self, tensors: list[Any], with_node: set[int]) -> None:
        """Of leaves, and of others that retain theirs; asking any other one is worth a warning to PyTorch."""
        base = self._torch._C.TensorBase
        if with_node:
            tensors = [t for t in tensors if id(t) not in with_node or base.retains_grad.__get__(t)]
        (gradients,) = _native.find_answers(tensors, base.grad)
        self._parts += ((tensor, ".grad", gradient) for tensor, gradient in gradients)

    def _enter_unbacked(self, tensor: Any) -> None:
        """A size without memory belongs to a placeholder for other tensors, unless it is on the meta device."""
        storage = self._torch._C.TensorBase.untyped_storage(tensor)
        if self._torch._C.StorageBase.device.__get__(storage).type != "meta":
            self._add_components(tensor)

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

    def _enter_bare(self, storages: list[Any]) -> None:
        """Storages that have no tensor any more."""
        keys = _native.try_each(self._torch._C.StorageBase._cdata, storages)
        known = map(self.storages.__contains__, keys)
        for storage in compress(storages, map(operator.not_, known)):
            try:
                address = storage.data_ptr()
                nbytes = storage.nbytes() if address else 0
                on_device = self._devices[storage.device]
            except Exception:  # a fake or wrapper tensor's: no memory
                continue
            found = Storage(storage._cdata, address, nbytes, storage)
            self.storages[found.key] = found
            on_device.append(found)

    def by_device(self) -> dict[str, list[Storage]]:
        """The storages of each device, by address, when all are entered."""
        return self._devices.by_name


def _references(tensor: Any) -> int:
    return sys.getrefcount(tensor)


@functools.cache
def _references_when_alone(torch: Any) -> int:
    """What `_references` gives for a tensor of the census that only C++ holds besides.

    Versions of PyTorch differ in who owns the Python object. A view's base, without memory, is the sample.
    """
    view = torch.empty(0, device="meta").view(-1)
    walked = [view._base]
    listed = [walked[0]]
    tensor = view._base
    return _references(tensor) if len(listed) == len(walked) else 0
