"""Whether the memory of a device can be measured here."""

from __future__ import annotations

import sys

from ..engine import following
from . import accelerators
from .devices import ACCELERATORS, Device


def check_measurable(device: Device) -> None:
    """Follow the allocator of this device from now on.

    Raises:
        NotImplementedError: this platform or this version of PyTorch does not show what is allocated there.
    """
    following.prepare()
    if device.kind in ACCELERATORS:
        accelerators.connect(device)
    elif device.kind == "cpu" and not following.cpu_is_followed():
        raise NotImplementedError(
            f"CPU tensors cannot be measured here: what PyTorch's CPU allocator does is not visible on {sys.platform} "
            "or in this build of PyTorch"
        )
