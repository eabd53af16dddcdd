"""Rows of a report from a census: who owns each storage, in which order, under which name. Plain values come out."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _native
from .._native import Storage
from ..chains.groups import Keepers
from ..data.device_names import device_order
from ..tensors.census import Census
from ..tensors.reading import numel_of, shape_of
from . import holders
from .levels import Level
from .names import NamedTensors

Entry = tuple[Storage | None, Any, Any]


class Row(NamedTuple):
    """One tensor, or a storage without one.

    ``owner``: the name of the tensor that its storage's bytes are shown for, "" if it is this one. ``nbytes`` is 0 for
    the others. ``by_holder``: the name is that of a variable. ``pinned``: it is in host memory that CUDA has locked.
    """

    name: str
    owner: str
    kind: str
    shape: tuple[Any, ...]
    dtype: str
    storage: int
    nbytes: int
    block: int
    by_holder: bool = False
    pinned: bool = False


@dataclass(frozen=True)
class Section:
    """One device: its rows, the largest first, and what is left out of them. ``folded``: (rows, bytes).

    ``keepers``: what keeps the largest storages alive, if that is asked for.
    """

    device: str
    rows: list[Row]
    folded: tuple[int, int]
    elements: int
    used: int
    level: Level | None
    keepers: Keepers | None = None


@dataclass
class RowSource:
    """What rows are made from, while the tensors live."""

    torch: Any
    census: Census
    named: NamedTensors
    levels: dict[str, Level]
    scope: set[int] | None = None
    with_empty: bool = False
    numbers: dict[str, int] = field(default_factory=dict)
    numbered: dict[int, str] = field(default_factory=dict)

    def name_of(self, tensor: Any) -> str:
        """A tensor's name; numbered by its type if it has none, in the order of asking."""
        return self._known_name(id(tensor)) or self._number(id(tensor), type(tensor).__name__)

    def _known_name(self, tensor: int) -> str | None:
        name = self.named.names.get(tensor) or self.numbered.get(tensor)
        if name is not None or tensor not in self.census.labels:
            return name
        whose, what = self.census.labels[tensor]
        if whose is None:
            return what
        return (self._known_name(whose) or self._number(whose, self.census.kinds[whose])) + what

    @functools.cached_property
    def _holders(self) -> dict[int, str]:
        """Names by the variables that hold them, of tensors without another name. Searched when first asked for."""
        return holders.names_of(self.torch, self.census.tensors - self.named.names.keys() - self.census.labels.keys())

    def _number(self, tensor: int, kind: str) -> str:
        if tensor in self._holders:
            return self._holders[tensor]
        number = self.numbers.get(kind, 0)
        self.numbers[kind] = number + 1
        name = self.numbered[tensor] = f"{kind}{number}"
        return name

    def is_named_by_holder(self, tensor: int) -> bool:
        """Whether its name, or that of the tensor that it is part of, is that of a variable."""
        whose: int | None = tensor
        while whose is not None and whose not in self.named.names:
            if whose not in self.census.labels:
                return whose in self._holders
            whose, _ = self.census.labels[whose]
        return False

    def in_scope(self, tensor: int) -> bool:
        """Whether it belongs to the module asked for: its parameters, buffers, their gradients, parts and states."""
        steps = 0
        while self.scope is not None and tensor not in self.scope and steps < 8:
            whose, _ = self.census.labels.get(tensor, (None, ""))
            whose = self.named.of.get(tensor, whose)
            if whose is None:
                return False
            tensor, steps = whose, steps + 1
        return self.scope is None or tensor in self.scope


def sections(found: RowSource, device: str | None, max_rows: int | None) -> list[Section]:
    """One section a device, in order, at most ``max_rows`` rows in each.

    Only those of ``device``, if it is given ("cuda" is all CUDA devices).
    """
    by_device = {name: in_scope(found, storages) for name, storages in found.census.by_device().items()}
    loose: dict[str, list[Any]] = {}
    for tensor in found.census.without_storage:
        if found.in_scope(id(tensor)):
            loose.setdefault(_device_of(found, tensor), []).append(tensor)
    there = {**by_device, **loose, **found.levels}
    wanted = [name for name in there if device in (None, name, name.partition(":")[0])]
    return [
        _section(found, name, by_device.get(name, []), loose.get(name, []), max_rows)
        for name in sorted(wanted, key=device_order)
    ]


def in_scope(found: RowSource, storages: list[Storage]) -> list[Storage]:
    """Those of the module asked for; all if none is."""
    if found.scope is None:
        return storages
    return [storage for storage in storages if any(found.in_scope(id(tensor)) for tensor in storage.tensors)]


def _device_of(found: RowSource, tensor: Any) -> str:
    try:
        return str(found.torch._C.TensorBase.device.__get__(tensor))
    except Exception:  # a tensor that has none
        return "meta"


def _section(found: RowSource, name: str, storages: list[Storage], loose: list[Any], max_rows: int | None) -> Section:
    used = _native.sum_storages(storages).counted_bytes
    storages = _in_order_of_names(found, storages)
    storages, left_out = _native.largest_first(storages, sys.maxsize if max_rows is None else max_rows)
    entries, elements = _that_hold(found, _entries(found, storages, loose))
    rows = [_row(found, *entry) for entry in entries[:max_rows]]
    folded = (len(entries) + len(left_out) - len(rows), used - sum(row.nbytes for row in rows))
    elements += _native.sum_answers(found.torch._C.TensorBase.numel, left_out)
    return Section(name, rows, folded, elements, used, found.levels.get(name))


def _in_order_of_names(found: RowSource, storages: list[Storage]) -> list[Storage]:
    """Those of a model's tensors in its order, where sizes are equal; others stay by address."""
    order = {tensor: i for i, tensor in enumerate(found.named.names)}
    if not order:
        return storages
    last = len(order)
    return sorted(storages, key=lambda storage: min((order.get(id(t), last) for t in storage.tensors), default=last))


def _counts(found: RowSource, tensors: list[Any]) -> list[int]:
    """Elements of each; 0 where a tensor does not say."""
    answers = _native.try_each(found.torch._C.TensorBase.numel, tensors)
    return [count if type(count) is int else 0 for count in answers]


def _that_hold(found: RowSource, listed: list[Entry]) -> tuple[list[Entry], int]:
    """The entries that have bytes or elements (all, if asked for), and the sum of their elements."""
    counts = _counts(found, [tensor for _, tensor, _ in listed])
    if found.with_empty:
        return listed, sum(counts)
    kept = [entry for entry, count in zip(listed, counts) if count or (entry[0] is not None and entry[0].counted)]
    return kept, sum(counts)


def _entries(found: RowSource, storages: list[Storage], loose: list[Any]) -> list[Entry]:
    """(storage, tensor, owner): the owners of storages first, largest first, then all that share one, then the rest."""
    sharing: list[Entry] = []
    owners: list[Entry] = []
    for storage in storages:
        tensors = storage.tensors
        if len(tensors) == 1:
            owners.append((storage, tensors[0], None))
        elif tensors:
            owner = _owner(found, tensors)
            owners.append((storage, owner, None))
            sharing += ((storage, tensor, owner) for tensor in tensors if tensor is not owner)
        elif storage.counted:
            owners.append((storage, None, None))
    return owners + sharing + [(None, tensor, None) for tensor in loose]


def _owner(found: RowSource, tensors: list[Any]) -> Any:
    """The tensor that a storage is shown for: one with a name, no view, the largest, the first."""
    names, labels = found.named.names, found.census.labels

    def rank(tensor: Any) -> tuple[bool, bool, bool, int]:
        key = id(tensor)
        return key in names, key in labels, not _is_view(found.torch, tensor), numel_of(found.torch, tensor)

    return max(tensors, key=rank)


def _is_view(torch: Any, tensor: Any) -> bool:
    try:
        return torch._C.TensorBase._base.__get__(tensor) is not None
    except Exception:  # a kind that does not say
        return False


def _row(found: RowSource, storage: Storage | None, tensor: Any, owner: Any) -> Row:
    base = found.torch._C.TensorBase
    if tensor is None:
        assert storage is not None
        name = found._number(storage.key, "UntypedStorage")
        return Row(name, "", "UntypedStorage", (storage.nbytes,), "", storage.key, storage.counted, storage.block)
    shows = owner is None and storage is not None
    return Row(
        found.name_of(tensor),
        "" if owner is None else found.name_of(owner),
        type(tensor).__name__,
        shape_of(found.torch, tensor),
        str(base.dtype.__get__(tensor)).removeprefix("torch."),
        storage.key if storage is not None else 0,
        storage.counted if shows and storage is not None else 0,
        storage.block if shows and storage is not None else 0,
        found.is_named_by_holder(id(tensor)),
        storage is not None and _is_pinned(found.torch, tensor),
    )


def _is_pinned(torch: Any, tensor: Any) -> bool:
    """Asked only where CUDA is in use already: nothing is pinned before, and asking must not begin to use it."""
    if not torch.cuda.is_initialized():
        return False
    try:
        return bool(torch._C.TensorBase.is_pinned(tensor))
    except Exception:  # a kind that does not say
        return False
