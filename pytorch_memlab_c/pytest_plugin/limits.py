"""The mark `limit_tensor_memory`: what it says, checked strictly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..line_profiler import callables

MARK = "limit_tensor_memory"
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNITS = "B, KB, MB, GB, TB (or KiB, MiB, ...; powers of 1024 both)"
_DEVICES = "'cpu', 'cuda', 'cuda:1', 'xpu', 'mps' or a torch.device"


@dataclass(frozen=True)
class Limit:
    """One mark. `size` in bytes; `text` is the limit as it was written; `device` None is the default device.

    `functions` are those whose lines a failure shows besides the test's own; None: what the test calls.
    """

    text: str
    size: int
    device: str | None
    functions: tuple[Any, ...] | None


def limit_of(mark: Any) -> Limit:
    """What a mark says.

    Raises:
        ValueError: it says nothing that can be checked; the message says why.
    """
    unknown = mark.kwargs.keys() - {"limit", "device", "functions"}
    if unknown:
        raise ValueError(f"unknown argument {', '.join(sorted(unknown))}; there are limit, device and functions")
    if len(mark.args) > 1 or (mark.args and "limit" in mark.kwargs):
        raise ValueError("give one limit; the others by name: device=..., functions=[...]")
    if not mark.args and "limit" not in mark.kwargs:
        raise ValueError('the limit is missing: write it like limit_tensor_memory("200 MB")')
    text = mark.args[0] if mark.args else mark.kwargs["limit"]
    size = parse_size(text)
    return Limit(text, size, _device(mark.kwargs.get("device")), _functions(mark.kwargs.get("functions")))


def parse_size(text: Any) -> int:
    """Bytes of `"200 MB"`, `"1.5 GiB"`, `"512 B"`; MB and MiB are both 2**20 bytes, as everywhere in this package.

    Raises:
        ValueError: it is not a size; the message says why.
    """
    if not isinstance(text, str):
        raise ValueError(f'the limit {text!r} has no unit: write it as text, like "200 MB"')
    match = re.fullmatch(r"([+-]?)(\d+(?:\.\d+)?|\.\d+) ?([^\d\s.]*)", text, re.ASCII)
    if match is None:
        raise ValueError(f'the limit {text!r} is not a size: write it like "200 MB"')
    sign, number, unit = match.groups()
    if sign == "-":
        raise ValueError(f"the limit {text!r} is negative")
    if not unit:
        raise ValueError(f"the limit {text!r} has no unit; units are {_UNITS}")
    if not re.fullmatch("B|[KMGT]i?B", unit):
        raise ValueError(f"the limit {text!r} has the unknown unit {unit!r}; units are {_UNITS}")
    return int(Decimal(number) * 1024 ** _POWERS[unit[0]])


def _device(device: Any) -> str | None:
    """The device's name, if it has the form of one; whether it is there shows when the test runs."""
    if device is None:
        return None
    kind, index = getattr(device, "type", None), getattr(device, "index", None)
    name = device if kind is None else kind if index is None else f"{kind}:{index}"
    if not isinstance(name, str) or not re.fullmatch(r"cpu(:0)?|mps(:0)?|(cuda|xpu)(:(0|[1-9]\d*))?", name, re.ASCII):
        raise ValueError(f"device={device!r} is not a device whose memory can be limited; give {_DEVICES}")
    return "cpu" if name == "cpu:0" else name


def _functions(functions: Any) -> tuple[Any, ...] | None:
    if functions is None:
        return None
    if isinstance(functions, str) or not isinstance(functions, Iterable):
        raise ValueError(f"functions={functions!r} is not a list of functions")
    listed = tuple(functions)
    for function in listed:
        try:
            list(callables.functions_of(function))
        except TypeError as error:
            raise ValueError(f"functions: {error}") from None
    return listed


def limits_of(item: Any) -> list[Limit]:
    """The limits that hold for a test, the nearest first: of the parameter, the function, the class, the module.

    Raises:
        ValueError: as `limit_of`.
    """
    marks = list(item.iter_markers(MARK))
    of_parameter = getattr(getattr(item, "callspec", None), "marks", ())  # pytest has the function's before them
    return [limit_of(mark) for mark in sorted(marks, key=lambda mark: mark not in of_parameter)]
