"""What autograd graphs hold: the tensors saved for backward, found from live tensors along `grad_fn`.

Only the saved data itself is read (`_raw_saved_*`, `.data`): nothing is unpacked, so no hook runs, no version is
checked, and a graph that was freed simply has nothing. Not while a backward pass runs on any thread: that frees what is
read here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import GetSetDescriptorType
from typing import Any

#: The names of what nodes of a kind have saved, by the kind's identity: hashing a type may run its metaclass.
Fields = dict[int, tuple[str, ...]]


def saved_tensors(roots: Iterable[Any]) -> Iterator[tuple[str, Any, str]]:
    """(name, holder, field) of all that the graphs of these nodes keep, for `saved_data(holder, field)`.

    Names are `MulBackward0.saved_other`, ..., and `AccumulateGrad.variable` for leaves.
    """
    fields: Fields = {}
    for node in _nodes(roots):
        for field, holder, attribute in saved_in(node, fields):
            yield f"{type(node).__name__}.{field.removeprefix('_raw_')}", holder, attribute


def nodes_from(sources: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """(node, source) of all nodes in the graphs of the sources, (tensor, its node) each: by the nearest source.

    All stay referenced until the end: a node's address is its identity.
    """
    level = list(sources)
    seen: dict[int, Any] = {}
    while level:
        following: list[tuple[Any, Any]] = []
        for source, node in level:
            if node is None or id(node) in seen:
                continue
            seen[id(node)] = node
            yield node, source
            following += ((source, behind) for behind in _behind(node) or ())
        level = following


def _behind(node: Any) -> list[Any] | None:
    try:
        return [following for following, _ in node.next_functions]
    except Exception:  # a custom function whose context is not a node (yet)
        return None


def saved_in(node: Any, fields: Fields) -> Iterator[tuple[str, Any, str]]:
    """(field, holder, attribute) of all that one node keeps, for `saved_data(holder, attribute)`.

    `fields` is what is known of each kind of node so far.
    """
    kind = type(node)
    if id(kind) not in fields:
        fields[id(kind)] = _saved_fields(kind)
    for field in fields[id(kind)]:
        yield from ((field, holder, attribute) for holder, attribute in _holders(node, field))


def saved_data(holder: Any, field: str) -> Any:
    """The saved tensor, or what a hook has made of it; None if there is nothing (any more)."""
    try:
        return getattr(holder, field, None)
    except Exception:  # freed meanwhile
        return None


def _nodes(roots: Iterable[Any]) -> Iterator[Any]:
    """Each node once. All stay referenced until the end: a node's address is its identity."""
    seen: dict[int, Any] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        behind = _behind(node)
        if behind is not None:
            waiting += behind
            yield node


def _saved_fields(kind: type) -> tuple[str, ...]:
    """The fields that PyTorch's own C code gives nodes of this kind."""
    names = {n for base in kind.__mro__ for n, value in vars(base).items() if type(value) is GetSetDescriptorType}
    leaf = kind.__name__ == "AccumulateGrad"
    return tuple(sorted(n for n in names if n.startswith("_raw_saved_") or (leaf and n == "variable")))


def _holders(node: Any, field: str) -> list[tuple[Any, str]]:
    if field == "variable":
        return [(node, field)]
    try:
        value = getattr(node, field)
    except Exception:  # freed, or a version that does not show it
        return []
    return [(saved, "data") for saved in (value if isinstance(value, (tuple, list)) else [value])]


def backward_runs() -> bool:
    """Whether any thread is inside a backward pass."""
    graph = sys.modules.get("torch.autograd.graph")
    engine = getattr(graph, "_engine_run_backward", None)
    codes = {engine.__code__} if engine is not None else set()
    autograd = sys.modules.get("torch.autograd")
    codes |= {getattr(autograd, name).__code__ for name in ("backward", "grad") if hasattr(autograd, name)}
    return any(_runs(frame, codes) for frame in sys._current_frames().values())


def _runs(frame: Any, codes: set[Any]) -> bool:
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False
