"""The mark `limit_tensor_memory`: what it says, checked strictly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..data.device_names import CPU, read_device
from ..data.sizes import parse_size
from ..line_profiler import callables

MARK = "limit_tensor_memory"
_NUMBERED = ("cuda", "xpu")
_KINDS = (CPU, "mps", *_NUMBERED)
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
    size = _size(text)
    return Limit(text, size, _device(mark.kwargs.get("device")), _functions(mark.kwargs.get("functions")))


def _size(text: Any) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ValueError(f"the limit {text!r} {error}") from None


def _device(device: Any) -> str | None:
    """The device's name, if it has the form of one; whether it is there shows when the test runs."""
    if device is None:
        return None
    named = None if isinstance(device, int) else read_device(device)
    if named is None or named.kind not in _KINDS or (named.number and named.kind not in _NUMBERED):
        raise ValueError(f"device={device!r} is not a device whose memory can be limited; give {_DEVICES}")
    return CPU if named.kind == CPU else str(named)


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
