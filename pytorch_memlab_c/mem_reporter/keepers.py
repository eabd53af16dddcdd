"""What keeps the largest storages alive, in a memory report."""

from __future__ import annotations

from ..chains.groups import Keepers, keepers_of
from ..chains.search import FEW_WAYS, Search
from .rows import RowSource, in_scope

#: Rows of a device.
MOST_ROWS = 10


def keepers_by_device(found: RowSource, device: str | None) -> dict[str, Keepers]:
    """The keepers on each device, or on one ("cuda" is all CUDA devices), from one search."""
    by_device = {
        name: [storage for storage in in_scope(found, storages) if storage.counted]
        for name, storages in found.census.by_device().items()
        if device in (None, name, name.partition(":")[0])
    }
    storages = [storage for of_device in by_device.values() for storage in of_device]
    search = Search(found.torch, found.census, storages, FEW_WAYS, False)
    return {name: keepers_of(search, of_device, MOST_ROWS) for name, of_device in by_device.items()}
