"""Finding the storages that a program's live tensors hold, those that only autograd's graph holds among them.

Nothing here runs the program's code: no hook that unpacks a saved tensor, no `__torch_function__`, no attribute of an
object that is not PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _native
from ..tensors.graph import Fields, saved_data, saved_in
from ..tensors.reading import components, is_tensor, script_tensors, tangents


def live_storages(torch: Any, device_type: str) -> list[Any]:
    """The storages (`torch.UntypedStorage`) on devices of this type ("cuda", "cpu") that Python can reach, each once.

    Reached are: live tensors, their gradients and tangents, parts of sparse and quantized ones, storages, parameters
    of TorchScript modules, and what the autograd graphs of all these have saved. Not reached: what only C++ code
    holds. Call it with PyTorch's modes and `__torch_function__` off.
    """
    return _Search(torch, device_type).run()


class _Search:
    def __init__(self, torch: Any, device_type: str) -> None:
        self._torch = torch
        self._base = torch._C.TensorBase
        self._device_type = device_type
        self._storages: dict[int, Any] = {}
        self._tensors: dict[int, Any] = {}
        self._nodes: dict[int, Any] = {}
        self._new_tensors: list[Any] = []
        self._new_nodes: list[Any] = []
        self._fields: Fields = {}

    def run(self) -> list[Any]:
        for storage in _native.walk_instances(self._torch.UntypedStorage):
            self._add_storage(storage)
        self._add_tensors(_native.walk_instances(self._base))
        self._add_tensors(_script_tensors(self._torch))
        self._add_nodes(_native.walk_instances((self._torch._C._FunctionBase, "next_functions")))
        while self._new_tensors or self._new_nodes:
            if self._new_tensors:
                self._visit_tensor(self._new_tensors.pop())
            else:
                self._visit_node(self._new_nodes.pop())
        return list(self._storages.values())

    def _add_storage(self, storage: Any) -> None:
        if storage.device.type == self._device_type:
            self._storages.setdefault(storage._cdata, storage)

    def _add_tensors(self, values: Iterable[Any]) -> None:
        for value in values:
            if id(value) not in self._tensors and is_tensor(self._torch, value):
                self._tensors[id(value)] = value
                self._new_tensors.append(value)

    def _add_nodes(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node is not None and id(node) not in self._nodes:
                self._nodes[id(node)] = node
                self._new_nodes.append(node)

    def _visit_tensor(self, tensor: Any) -> None:
        for part in (self._visit_storage, self._visit_relatives, self._visit_graph):
            try:
                part(tensor)
            except Exception:  # kinds of tensors that have no such part say so by all kinds of errors
                continue

    def _visit_storage(self, tensor: Any) -> None:
        self._add_tensors(part for _, part in components(self._torch, tensor))
        self._add_storage(self._base.untyped_storage(tensor))

    def _visit_relatives(self, tensor: Any) -> None:
        base = self._base
        if base.is_leaf.__get__(tensor) or base.retains_grad.__get__(tensor):
            self._add_tensors([base.grad.__get__(tensor)])
        self._add_tensors(tangent for _, _, tangent in tangents(self._torch, [tensor]))

    def _visit_graph(self, tensor: Any) -> None:
        self._add_nodes([self._base.grad_fn.__get__(tensor)])

    def _visit_node(self, node: Any) -> None:
        try:
            self._add_nodes(following for following, _ in node.next_functions)
            self._add_nodes([getattr(node, "_wrapped_node", None)])
        except Exception:
            pass
        self._add_tensors(saved_data(holder, attribute) for _, holder, attribute in saved_in(node, self._fields))


def _script_tensors(torch: Any) -> list[Any]:
    modules = _native.walk_instances(torch.jit.ScriptModule)
    return [tensor for module in modules for _, tensor in script_tensors(torch, module)]
