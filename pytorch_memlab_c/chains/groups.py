"""The keepers of many storages: those in one list or dict, and the parameters of one model, are one row."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from .._native import Storage
from ..tensors.census import Census
from .insides import attributes_of
from .search import FEW_WAYS, Search, Way
from .variables import name_of_type

#: What is not looked into is one row; a dict of this many parts or fewer is, where most bytes are in containers.
_FEW_PARTS = 8
_MOST_BYTES = 0.8
#: Objects of a kind that are one row.
_FEWEST_LINKED = 3
#: Containers in containers that are looked at.
_MOST_LEVELS = 8
_CONTAINERS = (list, tuple, deque, dict, set, frozenset)
_KINDS = {"": "tensors", ".grad": "gradients"}


class Keeper(NamedTuple):
    """What keeps some storages alive: their bytes, how many, and who, in words."""

    nbytes: int
    number: int
    text: str


class Keepers(NamedTuple):
    """The keepers of the most bytes, the largest first, and how many tensors and bytes are left out.

    ``whole``: all objects of the process were looked at.
    """

    rows: list[Keeper]
    folded: tuple[int, int]
    whole: bool = True


class _Row(NamedTuple):
    """Storages that are together. ``text`` gives the words: finding them takes longer than all else."""

    nbytes: int
    number: int
    text: Callable[[], str]


class _Held(NamedTuple):
    """A storage, the way to it, and the containers on that way, the outermost first: places in the tree of chains."""

    storage: Storage
    way: Way
    containers: tuple[int, ...]

    @property
    def kind(self) -> str:
        """What is together in a row: tensors, gradients, what graphs have saved."""
        return "saved" if self.way.part.startswith("saved") else self.way.part

    def container(self, level: int) -> int | None:
        return self.containers[level] if level < len(self.containers) else None


def keepers_by_device(
    torch: Any, census: Census, by_device: Mapping[str, Sequence[Storage]], most: int
) -> dict[str, Keepers]:
    """What keeps the storages of each device alive, in at most so many rows each, from one search."""
    storages = [storage for of_device in by_device.values() for storage in of_device]
    search = Search(torch, census, storages, FEW_WAYS, False)
    return {name: keepers_of(search, of_device, most) for name, of_device in by_device.items()}


def keepers_of(search: Search, storages: Iterable[Storage], most: int) -> Keepers:
    """What keeps the storages alive, in at most so many rows."""
    rows = sorted(_Groups(search).rows(storages), key=lambda row: -row.nbytes)
    left_out = rows[most:]
    shown = [Keeper(row.nbytes, row.number, row.text()) for row in rows[:most]]
    folded = sum(row.number for row in left_out), sum(row.nbytes for row in left_out)
    return Keepers(shown, folded, not search.ended_early)


class _Groups:
    def __init__(self, search: Search) -> None:
        self._search = search
        self._outer = self._outer_containers()

    def rows(self, storages: Iterable[Storage]) -> list[_Row]:
        """In no order."""
        held: list[list[_Held]] = []
        alone: dict[str, list[Storage]] = {}
        for storage in storages:
            ways = [self._held(storage, way) for way in self._search.ways(storage)]
            if ways:
                held.append(ways)
            else:
                alone.setdefault(self._search.nobody(storage), []).append(storage)
        found = [row for _, group in _by_kind(self._chosen(held)) for row in self._split(group, 0)]
        return found + [_Row(_bytes_of(group), len(group), partial(str, text)) for text, group in alone.items()]

    def _held(self, storage: Storage, way: Way) -> _Held:
        return _Held(storage, way, self._containers(way))

    def _chosen(self, held: list[list[_Held]]) -> list[_Held]:
        """The shortest way to each storage. Of a list in which others are, the last one is often in a variable, too."""
        others = Counter((ways[0].kind, ways[0].containers[:1]) for ways in held if ways[0].containers)

        def is_among_others(one: _Held) -> bool:
            return others[one.kind, one.containers[:1]] > 1 and not self._search.is_by_optimizer(one.way)

        chosen = []
        for ways in held:
            among = () if ways[0].containers else filter(is_among_others, ways)
            chosen.append(next((one for one in among if one.kind == ways[0].kind), ways[0]))
        return chosen

    # ---- which containers a way leads through ----

    def _containers(self, way: Way) -> tuple[int, ...]:
        """Lists, dicts and the like, and the outermost of the modules that the tensor is a parameter or buffer of."""
        model = self._model(way.at)
        if model is None:
            return tuple(place for place in self._outer[way.at] if self._search.objects[place] is not way.tensor)
        parent = self._search.parents[model]
        return (*(self._outer[parent] if parent >= 0 else ()), model)

    def _outer_containers(self) -> list[tuple[int, ...]]:
        """For each place the containers on the way to it and itself, the outermost first, no more than a few."""
        found: list[tuple[int, ...]] = []
        for place, parent in enumerate(self._search.parents):
            outer = found[parent] if parent >= 0 else ()
            is_one = len(outer) < _MOST_LEVELS and self._is_container(place)
            found.append((*outer, place) if is_one else outer)
        return found

    def _model(self, place: int) -> int | None:
        """The outermost module of those at the end of a way."""
        model = None
        while place >= 0 and self._is_state(place):
            model = place if self._search.kinds.is_module(self._search.objects[place]) else model
            place = self._search.parents[place]
        return model

    def _is_state(self, place: int) -> bool:
        """Whether it is a module, or a dict in which one has its parameters, buffers, children or attributes."""
        value = self._search.objects[place]
        if self._search.kinds.is_module(value) or self._search.kinds.is_tensor(value):
            return True
        return type(value) is dict and self._is_of_module(value, self._search.parents[place])

    def _is_of_module(self, value: Any, parent: int) -> bool:
        if parent < 0:
            return False
        holder = self._search.objects[parent]
        if type(holder) is dict:
            return self._is_of_module(value, self._search.parents[parent])
        if not self._search.kinds.is_module(holder):
            return False
        return value is attributes_of(holder) or any(value is one for one in self._search.kinds.state_of(holder))

    def _is_container(self, place: int) -> bool:
        """One that is not the attributes of an object, or the variables of a module."""
        value, parent = self._search.objects[place], self._search.parents[place]
        if not issubclass(type(value), _CONTAINERS):
            return False
        if not issubclass(type(value), dict):
            return parent < 0 or type(self._search.objects[parent]) is not FunctionType
        root = self._search.root(place) if parent < 0 else None
        if root is not None and root.value is None:
            return False
        return parent < 0 or (value is not attributes_of(self._search.objects[parent]) and not self._is_state(place))

    # ---- rows ----

    def _split(self, group: list[_Held], level: int) -> Iterator[_Row]:
        """One row for each container; for what is in it instead, where that says more."""
        for container, found in _by(group, lambda held: held.container(level)):
            if container is None:
                yield from self._of_objects(found)
            elif len(found) == 1:
                yield self._single(found[0])
            elif self._says_more(container, found, level + 1):
                yield from self._split(found, level + 1)
            else:
                yield self._together(found, partial(self._search.text, found[0].way, container), container)

    def _of_objects(self, group: list[_Held]) -> Iterator[_Row]:
        """Objects of a kind that are linked with each other, such as a tree or a list of links, are one row."""
        for (_, kind), found in _by(group, lambda held: self._linked(held.way)):
            if kind is None or len(found) < _FEWEST_LINKED:
                yield from map(self._single, found)
            else:
                yield self._together(found, partial(self._linked_text, found[0].way), None)

    def _linked(self, way: Way) -> tuple[int, int | None]:
        """The root of a way and the kind of what holds the tensor; None where that is not behind other objects."""
        root = self._search.root_place(way.at)
        holder = self._holder(way.at)
        is_behind = holder is not self._search.objects[root]
        return (root, id(type(holder))) if is_behind else (way.at, None)

    def _holder(self, at: int) -> Any:
        """The object at a place; for the dict of its attributes the object itself."""
        value, parent = self._search.objects[at], self._search.parents[at]
        if type(value) is not dict or parent < 0 or value is not attributes_of(self._search.objects[parent]):
            return value
        return self._search.objects[parent]

    def _linked_text(self, way: Way) -> str:
        root = self._search.root_place(way.at)
        return f"{name_of_type(self._holder(way.at))} objects <- {self._search.text(way, root)}"

    def _says_more(self, container: int, group: list[_Held], level: int) -> bool:
        parts = [(inner, list(held)) for inner, held in _by(group, lambda held: held.container(level))]
        if len(parts) == 1:
            return parts[0][0] is not None
        value = self._search.objects[container]
        if len(parts) > _FEW_PARTS or not issubclass(type(value), dict) or not _has_names(value):
            return False
        many = sum(_bytes_of(one.storage for one in held) for inner, held in parts if inner is not None)
        return many >= _MOST_BYTES * _bytes_of(held.storage for held in group)

    def _single(self, held: _Held) -> _Row:
        return _Row(held.storage.counted, 1, partial(self._search.line, held.way))

    def _together(self, group: list[_Held], text: Callable[[], str], container: int | None) -> _Row:
        is_model = container is not None and self._search.kinds.is_module(self._search.objects[container])
        what = f"{len(group):,} {_what(group[0].way.part, is_model)}"
        return _Row(_bytes_of(held.storage for held in group), len(group), lambda: f"{what} {text()}")


def _by_kind(held: list[_Held]) -> Iterator[tuple[Any, list[_Held]]]:
    return _by(held, lambda one: one.kind)


def _by(group: Iterable[_Held], key: Any) -> Iterator[tuple[Any, list[_Held]]]:
    """Those of equal keys together, in the order in which the keys come."""
    found: dict[Any, list[_Held]] = {}
    for one in group:
        found.setdefault(key(one), []).append(one)
    yield from found.items()


def _what(part: str, of_module: bool) -> str:
    if part.startswith("saved"):
        return "tensors saved for backward by the graphs in" if not of_module else "tensors saved for backward of"
    if of_module:
        return "gradients of" if part == ".grad" else "parameters and buffers of"
    return f"{_KINDS.get(part, f'tensors ({part})')} in"


def _has_names(value: dict[Any, Any]) -> bool:
    return all(type(key) is str for key in list(dict.keys(value)))


def _bytes_of(storages: Iterable[Storage]) -> int:
    return sum(storage.counted for storage in storages)
