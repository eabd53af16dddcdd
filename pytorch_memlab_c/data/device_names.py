"""Names of devices (``cpu``, ``cuda:0``) and of views (``target``, ``all``): reading, writing and ordering them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol

#: The view in which each segment counts for the device that was the target when it ended.
TARGET = "target"
ALL = "all"
CPU = "cpu"
_ORDER = {CPU: 1, "meta": 2}


def slot_name(slot: int) -> str:
    """The name of an engine slot: -1 the target record, 0 the CPU, 1 + i the GPU ``cuda:i``."""
    if slot < 0:
        return TARGET
    return CPU if slot == 0 else f"cuda:{slot - 1}"


class TorchDevice(Protocol):
    """What is used of a `torch.device`; PyTorch need not be there."""

    @property
    def type(self) -> str:
        """The kind: "cpu", "cuda", ...."""

    @property
    def index(self) -> int | None:
        """The number; None for the current device of its kind."""


#: A device as users may write it: "cuda:1", 1 (for "cuda:1"), or a `torch.device`.
DeviceLike = str | int | TorchDevice


class DeviceName(NamedTuple):
    """A device as it was written. `kind`: "cpu", "cuda", "xpu", ...; `number`: None where none was given."""

    kind: str
    number: int | None

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}:{self.number}"


def read_device(device: Any) -> DeviceName | None:
    """A device's kind and index: of "cuda:1", "cuda", 1 (for "cuda:1") or a `torch.device`; None for anything else.

    Whether there is such a kind of device, or this one, is not checked.
    """
    if isinstance(device, bool):
        return None
    if isinstance(device, int):
        return DeviceName("cuda", int(device))
    if isinstance(device, str):
        match = re.fullmatch(r"([a-z_]+)(?::(0|[1-9][0-9]*))?", device)
        return None if match is None else DeviceName(match[1], None if match[2] is None else int(match[2]))
    kind = getattr(device, "type", None)
    return DeviceName(kind, device.index) if isinstance(kind, str) and hasattr(device, "index") else None


def parse_view(device: Any) -> str:
    """The view named by ``device``: None or "target", "all", "cpu", "cuda:N", N, ``torch.device``.

    ``cuda`` alone means ``cuda:0``.

    Raises:
        ValueError: it is none of these.
    """
    if device is None:
        return TARGET
    if isinstance(device, str) and device in (TARGET, ALL):
        return device
    kind, index = read_device(device) or ("", None)
    if kind == CPU and not index:
        return CPU
    if kind == "cuda" and (index or 0) >= 0:
        return f"cuda:{index or 0}"
    raise ValueError(f"unknown device {device!r}: 'cpu', 'cuda:N', 'all' or 'target' is meant")


def device_order(device: str) -> tuple[int, str, int]:
    """Sort key of a device's name: accelerators by kind and number, then the CPU, then devices without memory."""
    kind, _, index = device.partition(":")
    return _ORDER.get(kind, 0), kind, int(index or 0)
