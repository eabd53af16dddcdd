"""Values compared with the types that their classes declare: what a file from elsewhere may have in their place."""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

#: Finds what is wrong with a value: where in it, and which value; None if nothing is.
Check = Callable[[Any], "tuple[str, Any] | None"]
_MOST = 1 << 63  # figures are 64 bits wide


def require_declared(value: Any) -> None:
    """Each field of a record, and of the records in it, is of the type that its class declares.

    Raises:
        TypeError: one is not; the message names the field and the value.
    """
    declared: Any = type(value)
    wrong = _check_for(declared)(value)
    if wrong:
        where, what = wrong
        raise TypeError(f"{where.lstrip('.')} is {shortened(repr(what), 40)}")


def shortened(text: str, most: int) -> str:
    """Its beginning, where it has more than so many characters."""
    return text if len(text) <= most else f"{text[:most]}..."


@functools.cache
def _check_for(declared: Any) -> Check:
    if declared in _PLAIN:
        return _of_kind(_PLAIN[declared])
    origin, inner = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return _any_of([_check_for(one) for one in inner])
    if origin is tuple:
        return _each(_check_for(inner[0]))
    if origin is Mapping:
        return _each_value(_check_for(inner[1]))
    return _fields(declared)


def _is_figure(value: Any) -> bool:
    return type(value) is int and -_MOST <= value < _MOST


_PLAIN: dict[Any, Callable[[Any], bool]] = {
    int: _is_figure,
    float: lambda value: type(value) is float and math.isfinite(value),
    str: lambda value: type(value) is str,
    bool: lambda value: type(value) is bool,
    types.NoneType: lambda value: value is None,
    types.CodeType: lambda value: type(value) is types.CodeType,
}


def _of_kind(is_one: Callable[[Any], bool]) -> Check:
    return lambda value: None if is_one(value) else ("", value)


def _any_of(checks: list[Check]) -> Check:
    def check(value: Any) -> tuple[str, Any] | None:
        wrong = [one(value) for one in checks]
        return None if None in wrong else max(filter(None, wrong), key=lambda found: len(found[0]))

    return check


def _each(check: Check) -> Check:
    def check_all(value: Any) -> tuple[str, Any] | None:
        if not isinstance(value, tuple):
            return "", value
        return _first((f"[{i}]", check(one)) for i, one in enumerate(value))

    return check_all


def _each_value(check: Check) -> Check:
    def check_all(value: Any) -> tuple[str, Any] | None:
        if not isinstance(value, Mapping):
            return "", value
        return _first((f"[{key!r}]", check(one)) for key, one in value.items())

    return check_all


def _fields(declared: type) -> Check:
    checks = {name: _check_for(hint) for name, hint in typing.get_type_hints(declared).items()}

    def check_all(value: Any) -> tuple[str, Any] | None:
        if not isinstance(value, declared):
            return "", value
        return _first((f".{name}", check(getattr(value, name))) for name, check in checks.items())

    return check_all


def _first(found: typing.Iterable[tuple[str, tuple[str, Any] | None]]) -> tuple[str, Any] | None:
    for where, wrong in found:
        if wrong:
            return where + wrong[0], wrong[1]
    return None
