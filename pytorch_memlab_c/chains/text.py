"""A chain of objects in words, from what holds the tensor to a root.

It reads `Meter.values[1489] <- meter, local of train at train.py:31`.
Labels are found only for the chains that are shown. Nothing of the program's code runs.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from types import CellType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from ..data.sources import qualname_of
from ..render.text import clean
from .insides import attributes_of, names_in
from .roots import Root, base_of_arrays, local_of
from .variables import SUSPENDED, locals_of, name_of_type

#: Objects of a chain that one label may pass over: a function leads to a variable by a tuple and a cell.
_AHEAD = 5
#: What one container is searched for.
_MOST_OF_ONE = 2_000_000
#: Links shown of a long chain at each of its ends.
_NEAREST, _LAST = 4, 2
#: Objects at each end of a chain that are looked at.
_LONGEST = 50
_ERROR = {key: BaseException.__dict__[key].__get__ for key in ("__cause__", "__context__", "args")}
_PLAIN = (list, tuple, dict, set, frozenset, deque)
_CACHE = type(functools.lru_cache(lambda: None))
_OF_CACHE = "functools.lru_cache of"
_STATE = ("_parameters", "_buffers", "_modules")


def text_of(objects: Sequence[Any], root: Root | None, kind: Kinds) -> str:
    """The chain in words. ``objects`` begins with the root's value; ``root``: None where none is known."""
    if len(objects) <= 2 * _LONGEST:
        return clean(_Chain(objects, root, kind).text())
    end = _Chain(objects[-_LONGEST:], None, kind).text()
    return clean(f"{end} <- ... <- {_Chain(objects[:_LONGEST], root, kind).text()}")


class Kinds:
    """What is known by its type alone: PyTorch's modules, tensors and autograd functions."""

    def __init__(self, torch: Any) -> None:
        self._module, self._tensor, self._context = torch.nn.Module, torch._C.TensorBase, torch._C._FunctionBase

    def is_module(self, value: Any) -> bool:
        """Whether it is a `torch.nn.Module`."""
        return issubclass(type(value), self._module)

    def is_tensor(self, value: Any) -> bool:
        """Whether it is a tensor."""
        return issubclass(type(value), self._tensor)

    def is_context(self, value: Any) -> bool:
        """Whether it is the `ctx` of a `torch.autograd.Function`."""
        return issubclass(type(value), self._context)

    def state_of(self, module: Any) -> list[Any]:
        """The dicts of a module's parameters, buffers and children."""
        attributes = attributes_of(module) or {}
        return [attributes[key] for key in _STATE if type(attributes.get(key)) is dict]


class _Chain:
    def __init__(self, objects: Sequence[Any], root: Root | None, kind: Kinds) -> None:
        self._objects = objects
        self._kind = kind
        self._links: list[str] = []
        self._path, self._where = _beginning(objects[0], root)
        self._labels = (
            self._of_frame,
            self._of_error,
            self._of_cache,
            self._of_call,
            self._of_tensor,
            self._of_local,
            self._of_context,
            self._of_array,
        )

    def text(self) -> str:
        at = 0
        while at < len(self._objects) - 1:
            at = self._step(at)
        self._close()
        links = self._links[::-1]
        if len(links) > _NEAREST + _LAST:
            links[_NEAREST:-_LAST] = [f"... {len(links) - _NEAREST - _LAST} more"]
        return " <- ".join(links)

    def _close(self) -> None:
        if self._path:
            self._links.append(f"{self._path}, {self._where}" if self._where else self._path)
        self._path = self._where = ""

    def _begin(self, path: str, where: str = "") -> None:
        self._close()
        self._path, self._where = path, where

    def _step(self, at: int) -> int:
        """One label further: returns the object that it leads to."""
        value = self._objects[at]
        for label in self._labels:
            reached = label(value, at)
            if reached:
                return reached
        return self._of_inside(value, at)

    def _following(self, at: int, kind: type | tuple[type, ...]) -> int:
        """The next object of a kind, not far; 0 if there is none."""
        ahead = range(at + 1, min(at + 1 + _AHEAD, len(self._objects)))
        return next((i for i in ahead if issubclass(type(self._objects[i]), kind)), 0)

    def _furthest(self, at: int, steps: Iterator[tuple[str, Any]]) -> tuple[str, int]:
        """The label that leads furthest along the chain, and to where; 0 if none does."""
        ahead = {id(self._objects[i]): i for i in range(at + 1, min(at + 1 + _AHEAD, len(self._objects)))}
        is_plain = type(self._objects[at]) in _PLAIN
        label, reached = "", 0
        for name, inner in steps:
            i = ahead.get(id(inner), 0)
            if i > reached:
                label, reached = name, i
                if is_plain:  # it leads one step further, and may be large
                    break
        return label, reached

    # ---- labels by the kind of object; each returns what it leads to, or 0 ----

    def _of_frame(self, value: Any, at: int) -> int:
        """A frame's variable. What a traceback leads to by other frames is passed over."""
        if type(value) is TracebackType:
            return self._following_frame(at)
        if type(value) is not FrameType:
            return 0
        name, reached = self._furthest(at, iter(locals_of(value)))
        if reached:
            self._begin(name, local_of(value))
        return reached or self._following(at, FrameType)

    def _following_frame(self, at: int) -> int:
        while at < len(self._objects) and type(self._objects[at]) is TracebackType:
            at += 1
        return at if at < len(self._objects) else 0

    def _of_error(self, value: Any, at: int) -> int:
        if not issubclass(type(value), BaseException):
            return 0
        if type(self._objects[at + 1]) is TracebackType:
            self._extend("" if " " in self._path else ".__traceback__")
            return at + 1
        label, reached = self._furthest(at, ((f".{key}", get(value)) for key, get in _ERROR.items()))
        if reached:
            self._begin(f"{name_of_type(value)}{label}")
        return reached

    def _of_cache(self, value: Any, at: int) -> int:
        """What `functools.lru_cache` keeps of a function."""
        if type(value) is not _CACHE:
            return 0
        wrapped = (attributes_of(value) or {}).get("__wrapped__")
        if self._objects[at + 1] is wrapped:
            return 0
        name = qualname_of(wrapped.__code__) if type(wrapped) is FunctionType else "a function"
        self._begin(f"{_OF_CACHE} {name}")
        table = type(self._objects[at + 1]) is dict and at + 2 < len(self._objects)
        return at + 2 if table else at + 1

    def _of_call(self, value: Any, at: int) -> int:
        """Functions, methods, cells, and what a suspended generator or coroutine has in its variables."""
        if type(value) is CellType:
            return at + 1
        if type(value) in SUSPENDED:
            return self._of_suspended(value, at)
        if type(value) not in (FunctionType, MethodType):
            return 0
        label, reached = self._furthest(at, names_in("", value, _MOST_OF_ONE))
        if reached and label.startswith("(): "):
            self._begin(label.removeprefix("(): "), f"in the closure of {qualname_of(value.__code__)}")
        elif reached and type(value) is FunctionType:
            self._begin(f"{qualname_of(value.__code__)}{label}")
        elif reached:
            self._begin("self", f"of the method {_name_of_method(value)}")
        return reached

    def _of_suspended(self, value: Any, at: int) -> int:
        frame = getattr(value, SUSPENDED[type(value)])
        name, reached = self._furthest(at, iter(locals_of(frame) if frame is not None else ()))
        if reached:
            kind = "generator" if type(value).__name__ == "generator" else type(value).__name__.replace("_", " ")
            self._begin(name, local_of(frame).replace("local of", f"local of the suspended {kind}", 1))
        return reached

    def _of_tensor(self, value: Any, at: int) -> int:
        """A hook of a tensor, or the node of the graph that it is from."""
        if not self._kind.is_tensor(value):
            return 0
        following = self._objects[at + 1]
        if self._kind.is_context(following):
            self._extend(".grad_fn")
            return at + 1
        if issubclass(type(following), dict) and following is not attributes_of(value) and at + 2 < len(self._objects):
            self._begin("a hook of a tensor")
            return at + 2
        return 0

    def _of_local(self, value: Any, at: int) -> int:
        """A value of `threading.local`, in the dict of one thread."""
        if not issubclass(type(value), threading.local):
            return 0
        for i in range(at + 1, min(at + 4, len(self._objects) - 1)):
            held = self._objects[i]
            keys = _keys_of(held, self._objects[i + 1]) if type(held) is dict else []
            if keys and type(keys[0]) is str:
                self._extend(f".{keys[0]} (thread-local)")
                return i + 1
        return 0

    def _of_context(self, value: Any, at: int) -> int:
        """The value of a context variable."""
        if type(value) is not contextvars.Context:
            return 0
        name, reached = self._furthest(at, ((variable.name, inner) for variable, inner in value.items()))
        if reached:
            self._begin(f"context variable {name}")
        return reached

    def _of_array(self, value: Any, at: int) -> int:
        """A NumPy array that shows the memory of a tensor, or of another array."""
        base = base_of_arrays()
        if base is None or type(value) is not base.__objclass__:
            return 0
        self._extend(".base")
        return at + 1

    def _of_inside(self, value: Any, at: int) -> int:
        """An item or an attribute; a new link begins at an object's attribute. Else the type of what comes."""
        label, reached = self._furthest(at, names_in("", value, _MOST_OF_ONE))
        if not reached:
            self._of_unknown(value, self._objects[at + 1])
            return at + 1
        if label.startswith(".") and self._is_instance(value) and not self._is_state(value, at):
            self._begin(name_of_type(value))
        self._extend(label)
        return reached

    def _of_unknown(self, value: Any, following: Any) -> None:
        if issubclass(type(value), dict) and any(key is following for key in list(dict.keys(value))):
            self._path = f"a key of {self._path}"
        else:
            self._begin(f"a {name_of_type(following)}")

    def _is_instance(self, value: Any) -> bool:
        return not issubclass(type(value), (type, ModuleType))

    def _is_state(self, value: Any, at: int) -> bool:
        """Whether it leads to a parameter, buffer or child of a module."""
        if not self._kind.is_module(value):
            return False
        ahead = {id(one) for one in self._objects[at + 1 : at + 4]}
        return any(id(one) in ahead for one in self._kind.state_of(value))

    def _extend(self, label: str) -> None:
        of_cache = self._path.startswith(_OF_CACHE) and ": " not in self._path
        self._path += f": {label}" if of_cache else label


def _name_of_method(method: MethodType) -> str:
    function = method.__func__
    return qualname_of(function.__code__) if type(function) is FunctionType else name_of_type(function)


def _keys_of(holder: dict[Any, Any], value: Any) -> list[Any]:
    return [key for key, inner in list(dict.items(holder)) if inner is value]


def _beginning(value: Any, root: Root | None) -> tuple[str, str]:
    if root is None:
        return f"a {name_of_type(value)}", ""
    if root.value is None and root.name:  # the namespace of a module
        return root.name, ""
    return root.name, root.where
