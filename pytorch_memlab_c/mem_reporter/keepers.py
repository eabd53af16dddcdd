"""What keeps the largest storages alive, in a memory report."""

from __future__ import annotations

from ..chains.groups import Keepers, keepers_by_device
from .rows import RowSource, in_scope

#: Rows of a device.
MOST_ROWS = 10


def keepers_in(found: RowSource, device: str | None) -> dict[str, Keepers]:
    """The keepers on each device, or on one ("cuda" is all CUDA devices)."""
    by_device = {
        name: [storage for storage in in_scope(found, storages) if storage.counted]
        for name, storages in found.census.by_device().items()
        if device in (None, name, name.partition(":")[0])
    }
    return keepers_by_device(found.torch, found.census, by_device, MOST_ROWS)
