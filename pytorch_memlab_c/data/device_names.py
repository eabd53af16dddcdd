"""How devices are named in reports: ``cpu``, ``cuda:0``, and the views ``target`` and ``all``."""

from __future__ import annotations

import re
from typing import Any

#: The view in which each segment counts for the device that was the target when it ended.
TARGET = "target"
ALL = "all"
CPU = "cpu"


def slot_name(slot: int) -> str:
    """The name of an engine slot: -1 the target record, 0 the CPU, 1 + i the GPU ``cuda:i``."""
    if slot < 0:
        return TARGET
    return CPU if slot == 0 else f"cuda:{slot - 1}"


def parse_view(device: Any) -> str:
    """The view named by ``device``: None or "target", "all", "cpu", "cuda:N", N, ``torch.device``.

    ``cuda`` alone means ``cuda:0``.

    Raises:
        ValueError: it is none of these.
    """
    if device is None:
        return TARGET
    name = f"cuda:{device}" if type(device) is int else str(device)
    name = {"cuda": "cuda:0", "cpu:0": CPU}.get(name, name)
    if name in (TARGET, ALL, CPU) or re.fullmatch(r"cuda:(0|[1-9][0-9]*)", name):
        return name
    raise ValueError(f"unknown device {device!r}: 'cpu', 'cuda:N', 'all' or 'target' is meant")


def device_order(device: str) -> tuple[bool, int]:
    """Sort key: GPUs by their number, the CPU last."""
    return device == CPU, 0 if device == CPU else int(device.partition(":")[2])
