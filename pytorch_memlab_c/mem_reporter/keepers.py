"""What keeps the largest storages alive, in a memory report."""

from __future__ import annotations

from ..chains.groups import Keeper, keepers_of
from ..chains.search import FEW_WAYS, Search
from .rows import Keepers, RowSource, in_scope

#: Rows of a device.
MOST_ROWS = 10


def keepers_by_device(found: RowSource, device: str | None) -> dict[str, Keepers]:
    """The keepers on each device, or on one ("cuda" is all CUDA devices), from one search."""
    by_device = {
        name: [storage for storage in in_scope(found, storages) if storage.counted]
        for name, storages in found.census.by_device().items()
        if device in (None, name, name.partition(":")[0])
    }
    search = Search(
        found.torch, found.census, [one for storages in by_device.values() for one in storages], FEW_WAYS, False
    )
    return {name: _shown(keepers_of(search, storages)) for name, storages in by_device.items()}


def _shown(rows: list[Keeper]) -> Keepers:
    left_out = rows[MOST_ROWS:]
    return Keepers(rows[:MOST_ROWS], (sum(row.number for row in left_out), sum(row.nbytes for row in left_out)))
