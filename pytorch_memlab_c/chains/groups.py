"""The keepers of many storages: those in one list or dict, and the parameters of one model, are one row."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .._native import Storage
from .insides import attributes_of
from .search import Search, Way

#: What is not looked into is one row; a dict of this many parts or fewer is, where most bytes are in containers.
_FEW_PARTS = 8
_MOST_BYTES = 0.8
_CONTAINERS = (list, tuple, deque, dict, set, frozenset)
_KINDS = {"": "tensors", ".grad": "gradients"}


class Keeper(NamedTuple):
    """What keeps some storages alive: their bytes, how many, and who, in words. ``frees``: what frees them."""

    nbytes: int
    number: int
    text: str
    frees: str


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


def keepers_of(search: Search, storages: Iterable[Storage]) -> list[Keeper]:
    """All rows, the largest first."""
    return _Groups(search).rows(storages)


class _Groups:
    def __init__(self, search: Search) -> None:
        self._search = search
        self._is_container: dict[int, bool] = {}

    def rows(self, storages: Iterable[Storage]) -> list[Keeper]:
        held: list[list[_Held]] = []
        alone: dict[str, list[Storage]] = {}
        for storage in storages:
            ways = [self._held(storage, way) for way in self._search.ways(storage)]
            if ways:
                held.append(ways)
            else:
                alone.setdefault(self._search.nobody(storage), []).append(storage)
        found = [row for _, group in _by_kind(self._chosen(held)) for row in self._split(group, 0)]
        found += [Keeper(_bytes_of(group), len(group), text, "") for text, group in alone.items()]
        return sorted(found, key=lambda row: -row.nbytes)

    def _held(self, storage: Storage, way: Way) -> _Held:
        return _Held(storage, way, tuple(self._containers(self._search.path(way.at), way.tensor)))

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

    def _containers(self, path: Sequence[int], tensor: Any) -> Iterator[int]:
        """Lists, dicts and the like, and the outermost of the modules that the tensor is a parameter or buffer of."""
        model, end = self._model(path)
        for place in path[:end]:
            value = self._search.objects[place]
            if place not in self._is_container:
                self._is_container[place] = self._is_plain_container(place)
            if value is not tensor and self._is_container[place]:
                yield place
        if model is not None:
            yield model

    def _model(self, path: Sequence[int]) -> tuple[int | None, int]:
        """The outermost module of those at the end of a way, and where in the way it is."""
        objects, kinds = self._search.objects, self._search.kinds
        model, end, inner = None, len(path), len(path)
        while inner and self._is_state(path[inner - 1]):
            inner -= 1
            if kinds.is_module(objects[path[inner]]):
                model, end = path[inner], inner
        return model, end

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

    def _is_plain_container(self, place: int) -> bool:
        """One that is not the attributes of an object, or the variables of a module."""
        value, parent = self._search.objects[place], self._search.parents[place]
        if not issubclass(type(value), _CONTAINERS):
            return False
        if not issubclass(type(value), dict):
            return parent < 0 or not callable(self._search.objects[parent])
        root = self._search.root(place) if parent < 0 else None
        if root is not None and root.value is None:
            return False
        return parent < 0 or (value is not attributes_of(self._search.objects[parent]) and not self._is_state(place))

    # ---- rows ----

    def _split(self, group: list[_Held], level: int) -> Iterator[Keeper]:
        """One row for each container; for what is in it instead, where that says more."""
        for container, found in _by(group, lambda held: held.container(level)):
            if container is None:
                yield from (self._single(held) for held in found)
            elif len(found) == 1:
                yield self._single(found[0])
            elif self._says_more(container, found, level + 1):
                yield from self._split(found, level + 1)
            else:
                yield self._together(container, found)

    def _says_more(self, container: int, group: list[_Held], level: int) -> bool:
        parts = [(inner, list(held)) for inner, held in _by(group, lambda held: held.container(level))]
        if len(parts) == 1:
            return parts[0][0] is not None
        value = self._search.objects[container]
        if len(parts) > _FEW_PARTS or not issubclass(type(value), dict) or not _has_names(value):
            return False
        many = sum(_bytes_of(one.storage for one in held) for inner, held in parts if inner is not None)
        return many >= _MOST_BYTES * _bytes_of(held.storage for held in group)

    def _single(self, held: _Held) -> Keeper:
        return Keeper(held.storage.counted, 1, self._search.line(held.way), self._frees(held))

    def _together(self, container: int, group: list[_Held]) -> Keeper:
        value = self._search.objects[container]
        what = _what(group[0].way.part, self._search.kinds.is_module(value))
        text = f"{len(group):,} {what} {self._search.text(group[0].way, container)}"
        return Keeper(_bytes_of(held.storage for held in group), len(group), text, self._frees(group[0]))

    def _frees(self, held: _Held) -> str:
        root = self._search.root(self._search.path(held.way.at)[0], held.way.variable)
        return root.frees if root is not None else ""


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
    return all(type(key) is str for key in dict.keys(value))


def _bytes_of(storages: Iterable[Storage]) -> int:
    return sum(storage.counted for storage in storages)
