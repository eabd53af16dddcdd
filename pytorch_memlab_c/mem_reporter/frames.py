"""A snapshot of all live tensors as a pandas DataFrame, and what changed between two of them.

pandas is imported when the first frame is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._native import Storage
from ..tensors.census import Census
from .rows import Section

if TYPE_CHECKING:
    import pandas

COLUMNS = ("name", "type", "shape", "dtype", "device", "storage_id", "storage_bytes", "allocator_bytes")
CHANGES = ("change", "name", "type", "shape", "device", "bytes_before", "bytes_after", "bytes_changed")

#: The frame's attribute that has the names which are those of variables.
_BY_HOLDER = "named by variables"


class StorageNumbers:
    """Numbers storages for the life of the process: an address that is used again gets a new number.

    The entries are PyTorch's weak references: they keep no memory of a tensor, only a few bytes.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._last = 0

    def number_all(self, torch: Any, census: Census) -> dict[int, int]:
        """The number of each storage of the census, by its key."""
        self._numbers = {key: entry for key, entry in self._numbers.items() if not entry[1].expired()}
        return {key: self._number(torch, storage) for key, storage in census.storages.items()}

    def _number(self, torch: Any, storage: Storage) -> int:
        if storage.key not in self._numbers:
            from torch.multiprocessing.reductions import StorageWeakRef

            alive = storage.bare or torch._C.TensorBase.untyped_storage(storage.tensors[0])
            self._last += 1
            self._numbers[storage.key] = (self._last, StorageWeakRef(alive))
        return self._numbers[storage.key][0]


numbers = StorageNumbers()


def build_frame(sections: Iterable[Section], storage_ids: dict[int, int]) -> pandas.DataFrame:
    """One row a tensor, columns as in ``COLUMNS``."""
    import pandas

    rows = [
        (row.name, row.kind, row.shape, row.dtype, s.device, storage_ids.get(row.storage, 0), row.nbytes, row.block)
        for s in sections
        for row in s.rows
    ]
    frame = pandas.DataFrame.from_records(rows, columns=list(COLUMNS))
    integers = ["storage_id", "storage_bytes", "allocator_bytes"]
    frame[integers] = frame[integers].astype("int64")
    frame.attrs[_BY_HOLDER] = sorted({row.name for section in sections for row in section.rows if row.by_holder})
    return frame


class _Held(NamedTuple):
    name: str
    kind: str
    shape: Any
    device: str
    nbytes: int
    by_holder: bool

    @property
    def has_name(self) -> bool:
        """Whether the name is more than a number within one report, or a variable, which may hold another one later."""
        return not self.by_holder and not re.fullmatch(rf"{re.escape(self.kind)}\d+(\..*)?", self.name)


def compare(before: pandas.DataFrame, after: pandas.DataFrame) -> pandas.DataFrame:
    """What is new, gone, grown and shrunk from one snapshot to the other, the largest change first."""
    from .whole_frame import WholeFrame

    old, new = _by_storage(before, "before"), _by_storage(after, "after")
    changes = [_change(old[key], new[key]) for key in old.keys() & new.keys()]
    gone = {key: held for key, held in old.items() if key not in new}
    fresh = {key: held for key, held in new.items() if key not in old}
    changes += _replaced(gone, fresh)
    changes += [_change(held, None) for held in gone.values()] + [_change(None, held) for held in fresh.values()]
    rows = sorted((change for change in changes if change[-1]), key=lambda change: (-abs(change[-1]), change[1]))
    return WholeFrame.from_records(rows, columns=list(CHANGES))


def _by_storage(frame: pandas.DataFrame, which: str) -> dict[Any, _Held]:
    missing = [column for column in COLUMNS if column not in getattr(frame, "columns", ())]
    if missing:
        raise ValueError(f"{which} is not a frame of MemReporter.snapshot(): it has no column {missing[0]!r}")
    columns = ("storage_id", "name", "type", "shape", "device", "storage_bytes")
    by_holder = set(frame.attrs.get(_BY_HOLDER, ()))
    return {
        (device, key): _Held(name, kind, shape, device, size, name in by_holder)
        for key, name, kind, shape, device, size in zip(*(frame[column] for column in columns))
        if size
    }


def _replaced(gone: dict[Any, _Held], fresh: dict[Any, _Held]) -> list[tuple[Any, ...]]:
    """Pairs that have the same name in both snapshots; they are taken out of both.

    It is the same thing on another storage: a cache that grew, a gradient that was made anew.
    """
    by_name = _unique_names(fresh)
    pairs = [(key, by_name[name]) for name, key in _unique_names(gone).items() if name in by_name]
    return [_change(gone.pop(old), fresh.pop(new)) for old, new in pairs]


def _unique_names(held: dict[Any, _Held]) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], list[Any]] = {}
    for key, one in held.items():
        if one.has_name:
            found.setdefault((one.device, one.name), []).append(key)
    return {name: keys[0] for name, keys in found.items() if len(keys) == 1}


def _change(old: _Held | None, new: _Held | None) -> tuple[Any, ...]:
    shown = new or old
    assert shown is not None
    before, after = (old.nbytes if old else 0), (new.nbytes if new else 0)
    change = "new" if old is None else "gone" if new is None else "grown" if after > before else "shrunk"
    return change, shown.name, shown.kind, shown.shape, shown.device, before, after, after - before
