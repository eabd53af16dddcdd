"""Names of tensors: parameters and buffers of models (all names of tied ones), and the states of optimizers.

Models and optimizers are asked anew for each report, so what they have gained, moved or dropped since is right; they
are held by weak references.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class Names:
    """The models and optimizers that give names."""

    def __init__(self) -> None:
        self._models: list[weakref.ref[Any]] = []
        self._optimizers: list[tuple[str, weakref.ref[Any]]] = []

    def add_model(self, model: Any) -> None:
        """Use the names of a module's parameters and buffers.

        Raises:
            TypeError: it is no module.
        """
        check_model(model)
        self._models.append(weakref.ref(model))

    def add_optimizer(self, optimizer: Any) -> None:
        """Use the names of an optimizer's states.

        Raises:
            TypeError: it is no optimizer.
        """
        if not hasattr(optimizer, "param_groups") or not hasattr(optimizer, "state"):
            raise TypeError(f"optimizer must be a torch.optim.Optimizer, not {type(optimizer).__name__}")
        known = [ref for _, ref in self._optimizers if ref() is not None]
        if any(ref() is optimizer for ref in known):
            return
        kind = type(optimizer).__name__
        same = sum(type(ref()).__name__ == kind for ref in known)
        self._optimizers.append((kind if same == 0 else f"{kind}{same + 1}", weakref.ref(optimizer)))

    def now(self, torch: Any, model: Any = None) -> NamedTensors:
        """The names as they are now; `model` gives names to what has none of the models added."""
        named = NamedTensors(torch)
        for ref in self._models:
            named.take_model(ref())
        named.take_model(model)
        for label, optimizer in self._optimizers:
            named.take_optimizer(label, optimizer())
        return named


class NamedTensors:
    """Names by the tensors' identities, good while the tensors live. `of`: the parameter that a state belongs to."""

    def __init__(self, torch: Any) -> None:
        self.names: dict[int, str] = {}
        self.of: dict[int, int] = {}
        self._base = torch._C.TensorBase

    def take_model(self, model: Any) -> None:
        """Name the parameters, buffers and gradients of a module; None: nothing."""
        if model is None:
            return
        found: dict[int, list[str]] = {}
        for name, tensor in tensors_of_model(model):
            found.setdefault(id(tensor), []).append(name)
        for tensor_id, names in found.items():
            self.names.setdefault(tensor_id, "+".join(dict.fromkeys(names)))

    def take_optimizer(self, label: str, optimizer: Any) -> None:
        """Name the parameters and states of an optimizer; None: nothing."""
        if optimizer is None:
            return
        for i, group in enumerate(optimizer.param_groups):
            given = group.get("param_names") or []
            for j, parameter in enumerate(group["params"]):
                name = given[j] if j < len(given) else f"{label}.groups.{i}.params.{j}"
                self.names.setdefault(id(parameter), name)
            for key, value in list(group.items()):
                if key != "params":
                    self._take(f"{label}.groups.{i}.{key}", value, None)
        for key, state in list(optimizer.state.items()):
            parameter = id(key) if issubclass(type(key), self._base) else None
            name = self.names.get(id(key), "state" if parameter else str(key))
            self._take(name if name.startswith(f"{label}.") else f"{label}.{name}", state, parameter)

    def _take(self, name: str, value: Any, parameter: int | None, depth: int = 0) -> None:
        """Name the tensors in a state: dicts, lists and tuples are looked into."""
        if issubclass(type(value), self._base):
            self.names.setdefault(id(value), name)
            if parameter is not None and id(value) != parameter:
                self.of.setdefault(id(value), parameter)
        elif depth < 8 and isinstance(
            value, (dict, list, tuple, Mapping)
        ):  # checking for a dict is faster than for a Mapping
            items = list(enumerate(value)) if isinstance(value, (list, tuple)) else list(value.items())
            for key, inner in items:
                self._take(f"{name}.{key}", inner, parameter, depth + 1)


def check_model(model: Any) -> None:
    """Raise `TypeError` unless it is a module."""
    if isinstance(model, type) or not callable(getattr(model, "named_parameters", None)):
        raise TypeError(f"model must be a torch.nn.Module, not {model!r:.60}")


def tensors_of_model(model: Any) -> Iterator[tuple[str, Any]]:
    """Parameters, then buffers, of a module; a tied one under each of its names."""
    for method in (model.named_parameters, model.named_buffers):
        yield from _all_names(method)


def _all_names(method: Any) -> Iterable[tuple[str, Any]]:
    try:
        return list(method(remove_duplicate=False))
    except TypeError:  # a module of its own kind, without that choice
        return list(method())
