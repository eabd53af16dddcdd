"""Reading tensors of every kind without running the program's code: through the methods of PyTorch's base class alone.

Overrides (`__torch_function__`, properties of subclasses, `__class__`) are not called. What has no storage of its own
(sparse, functional, wrapped tensors) is read through the tensors that it is made of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

#: The methods that give the tensors of a sparse layout.
_SPARSE = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
_NESTED = ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets")
_PER_CHANNEL = ("q_per_channel_scales", "q_per_channel_zero_points")

Component = tuple[str, Any]


@contextlib.contextmanager
def quietly(torch: Any) -> Iterator[None]:
    """No overrides, modes, function transforms or graph building in the block: only what PyTorch itself does."""
    guards = ("DisableTorchFunction", "_DisableTorchDispatch", "_DisableFuncTorch")
    with contextlib.ExitStack() as stack:
        for guard in guards:
            if hasattr(torch._C, guard):
                stack.enter_context(getattr(torch._C, guard)())
        stack.enter_context(torch.no_grad())
        yield


def is_tensor(torch: Any, value: object) -> bool:
    """Whether it is a tensor, by its type alone."""
    return issubclass(type(value), torch._C.TensorBase)


def storage_key(torch: Any, tensor: Any) -> int:
    """What tells a tensor's storage from all others that live; 0 for a tensor that has none, as a sparse one."""
    try:
        key: int = torch._C.StorageBase._cdata.__get__(torch._C.TensorBase.untyped_storage(tensor))
    except Exception:
        return 0
    return key


def address_reader(torch: Any) -> Callable[[Any], int]:
    """A function that returns where a tensor's storage begins: 0 if it has no memory.

    It does not copy a storage that is shared until it is written to, where this version of PyTorch can.
    """
    if hasattr(torch._C, "_data_address"):
        read: Callable[[Any], int] = torch._C._data_address
        return read
    storage_of = torch._C.TensorBase.untyped_storage

    def data_address(tensor: Any) -> int:
        try:
            return int(storage_of(tensor).data_ptr())
        except Exception:  # fake and wrapper tensors
            return 0

    return data_address


def components(torch: Any, tensor: Any) -> list[Component]:
    """The tensors that this one is made of or keeps beside its storage, as (name, tensor)."""
    base = torch._C.TensorBase
    layout = str(base.layout.__get__(tensor))
    found: list[Component] = []
    if layout in _SPARSE:
        found += _call_each(base, tensor, _SPARSE[layout])
    elif base.is_nested.__get__(tensor) and layout == "torch.strided":
        found += _call_each(base, tensor, _NESTED)
    elif base.is_quantized.__get__(tensor) and "per_channel" in str(_tried(base.qscheme, tensor)):
        found += _call_each(base, tensor, _PER_CHANNEL)
    return found + _wrapped(torch, tensor)


def tangents(torch: Any, tensors: list[Any]) -> list[tuple[Any, str, Any]]:
    """(tensor, ".tangent", its tangent) of those that carry one for forward-mode differentiation."""
    if torch.autograd.forward_ad._current_level < 0:
        return []
    duals = ((tensor, _tried(lambda t: torch._VF._unpack_dual(t, level=0).tangent, tensor)) for tensor in tensors)
    return [(tensor, ".tangent", tangent) for tensor, tangent in duals if tangent is not None]


def script_tensors(torch: Any, module: Any) -> list[Component]:
    """The parameters and buffers of one TorchScript module, without those of its submodules."""
    inside = object.__getattribute__(module, "__dict__").get("_c")
    kinds = filter(None, (_tried(kind, inside) for kind in (torch._C.ParameterDict, torch._C.BufferDict)))
    return [pair for kind in kinds for pair in kind.items()]


def _call_each(base: Any, tensor: Any, methods: tuple[str, ...]) -> list[Component]:
    found = [(name.strip("_"), _tried(getattr(base, name), tensor)) for name in methods if hasattr(base, name)]
    return [(name, part) for name, part in found if part is not None]


def _wrapped(torch: Any, tensor: Any) -> list[Component]:
    """The tensor inside a functional tensor, or inside one of a `torch.func` transform."""
    functorch = getattr(torch._C, "_functorch", None)
    inner = None
    if _tried(torch._is_functional_tensor, tensor):
        inner = _tried(torch._from_functional_tensor, tensor)
    elif functorch is not None and _tried(functorch.is_functorch_wrapped_tensor, tensor):
        inner = _tried(functorch.get_unwrapped, tensor)
    return [] if inner is None else [("inner", inner)]


def _tried(function: Any, tensor: Any) -> Any:
    try:
        return function(tensor)
    except Exception:  # not for this kind of tensor
        return None


def numel_of(torch: Any, tensor: Any) -> int:
    """Elements; 0 where the tensor does not say, or says it with a symbol."""
    numel = _tried(torch._C.TensorBase.numel, tensor)
    return numel if type(numel) is int else 0


def shape_of(torch: Any, tensor: Any) -> tuple[Any, ...]:
    """Its shape: ints, and text for what is none (symbols, the ragged dimensions of a nested tensor)."""
    base = torch._C.TensorBase
    shape = _tried(base.shape.__get__, tensor)
    if shape is not None:
        return tuple(size if type(size) is int else str(size) for size in shape)
    dimensions = _tried(base.dim, tensor)
    return () if dimensions is None else tuple(_tried_size(base, tensor, i) for i in range(dimensions))


def _tried_size(base: Any, tensor: Any, dimension: int) -> Any:
    size = _tried(lambda t: base.size(t, dimension), tensor)
    return size if type(size) is int else "*"
