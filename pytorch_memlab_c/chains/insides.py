"""What an object holds, one step in, with names as Python would write them: `x[3]`, `x['k']`, `x.attribute`.

Only Python's own methods are called, on containers and on what Python keeps of an object: nothing of its class runs.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from types import FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

Step = tuple[str, Any]

_LONGEST_KEY = 40
_ATOMS = {type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, ModuleType, type(Ellipsis)}
_KEYS = {type(None), bool, int, float, str, bytes}
#: What a `torch.nn.Module` shows as its attributes.
_OF_MODULES = ("_parameters", "_buffers", "_modules")
_MRO, _NAMESPACE = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__


def names_in(name: str, value: Any, most: int) -> Iterator[Step]:
    """At most `most` of what `value` holds."""
    kind = type(value)
    if kind in _ATOMS:
        return
    try:
        yield from islice(_inside(name, value, kind), max(most, 0))
    except RuntimeError:  # another thread has changed it
        return


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The dict of an instance's attributes; None where it has none."""
    for base in _MRO(type(value)):
        member = (_NAMESPACE(base) or {}).get("__dict__")
        if type(member) is GetSetDescriptorType and base is not type:
            found = member.__get__(value)
            return found if issubclass(type(found), dict) else None
    return None


def _inside(name: str, value: Any, kind: type) -> Iterator[Step]:
    bases = _MRO(kind)
    if dict in bases:
        yield from ((f"{name}[{_key(key)}]", inner) for key, inner in dict.items(value))
    for sequence in (list, tuple, deque):
        if sequence in bases:
            yield from ((f"{name}[{i}]", inner) for i, inner in enumerate(sequence.__iter__(value)))
    for group in (set, frozenset):
        if group in bases:
            yield from ((f"{name}{{...}}", inner) for inner in group.__iter__(value))
    yield from _attributes(name, value, kind, bases)


def _key(key: Any) -> str:
    if type(key) is tuple:
        return ", ".join(map(_key, key))
    if type(key) not in _KEYS:
        return f"<{type.__dict__['__name__'].__get__(type(key))}>"
    text = repr(key)
    return text if len(text) <= _LONGEST_KEY else text[: _LONGEST_KEY - 3] + "..."


def _attributes(name: str, value: Any, kind: type, bases: Iterable[type]) -> Iterator[Step]:
    if type in bases:
        yield from ((f"{name}.{key}", inner) for key, inner in dict(_NAMESPACE(value) or {}).items())
    elif kind is FunctionType:
        yield from _of_function(name, value)
    elif kind is MethodType:
        yield f"{name}.__self__", value.__self__
    elif functools.partial in bases:
        yield f"{name}.args", functools.partial.args.__get__(value)
        yield f"{name}.keywords", functools.partial.keywords.__get__(value)
    else:
        yield from _of_instance(name, value, bases)


def _of_function(name: str, function: FunctionType) -> Iterator[Step]:
    yield f"{name}.__defaults__", function.__defaults__
    yield f"{name}.__kwdefaults__", function.__kwdefaults__
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield f"{name}(): {free}", cell.cell_contents
        except ValueError:  # it has no value yet
            continue


def _of_instance(name: str, value: Any, bases: Iterable[type]) -> Iterator[Step]:
    has_dict = True
    for base in bases:
        namespace: MappingProxyType[str, Any] | dict[str, Any] = _NAMESPACE(base) or {}  # None: the type is not ready
        if has_dict and "__dict__" in namespace and base is not type:
            has_dict = False
            if type(namespace["__dict__"]) is GetSetDescriptorType:
                yield from _of_dict(name, namespace["__dict__"].__get__(value))
        for key, member in namespace.items() if base is not object else ():
            if type(member) is MemberDescriptorType and base.__flags__ & _HEAP_TYPE:
                yield from _of_slot(f"{name}.{key}", member, value)


_HEAP_TYPE = 1 << 9  # defined in Python, or by a C module as such


def _of_slot(name: str, member: MemberDescriptorType, value: Any) -> Iterator[Step]:
    try:
        yield name, member.__get__(value)
    except AttributeError:  # it has no value
        return


def _of_dict(name: str, attributes: Any) -> Iterator[Step]:
    for key, inner in dict.items(attributes):
        if key in _OF_MODULES and type(inner) is dict:
            yield from ((f"{name}.{part}", held) for part, held in dict.items(inner))
        else:
            yield f"{name}.{key}", inner
