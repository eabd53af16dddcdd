"""The search for what holds tensors: one walk over the objects of the process, and the autograd graphs besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from .. import _native
from .._native import Storage
from ..tensors import graph
from ..tensors.census import Census
from ..tensors.reading import storage_key
from . import own
from .roots import Root, Roots, base_of_arrays, optimizers
from .text import Kinds, text_of
from .variables import name_of_type

#: Objects that one search looks at, at most: about ten seconds.
LIMIT = 50_000_000
#: Chains that `keepers` gives of one tensor.
MOST_WAYS = 8
#: Chains to one tensor that a report chooses from.
FEW_WAYS = 3
#: What a chain begins at that no root leads to.
OUTSIDE = ("held by a call that runs, or by C or C++ code", "")
GARBAGE = ("garbage in a cycle", "gc.collect()")
NOBODY = "no Python object that can be seen: a call that runs or C++ holds it"
NO_SOURCE = "no Python object: an autograd graph holds it"
_MOST_LABELS = 8


class Way(NamedTuple):
    """What leads to a storage: the place of its holder in the tree of chains, the tensor, and what it is of that.

    ``part`` is ``.grad`` and the like, ``saved by MulBackward0`` where a graph holds it, or empty. ``variable``: which
    of the variables that have the tensor itself.
    """

    at: int
    tensor: Any
    part: str = ""
    variable: int = 0


class Search:
    """All chains to the tensors of some storages.

    Holds the objects of the chains: it is made and dropped in one report.

    Args:
        most: chains to one tensor.
        graphs: look into autograd graphs also for what Python holds besides.
    """

    def __init__(self, torch: Any, census: Census, storages: Sequence[Storage], most: int, graphs: bool) -> None:
        self.kinds = Kinds(torch)
        self._torch = torch
        self._census = census
        self._tensors = {id(one): one for one in chain.from_iterable(census.held)}
        self._saved: dict[int, list[tuple[Any, str]]] = {storage.key: [] for storage in storages}
        self._graphs: dict[int, Any] = {}
        self._most = most
        graphs = (graphs or bool(census.saved or census.contexts)) and not census.graph_skipped
        targets = self._targets(storages, graphs)
        self._roots = Roots(census.contexts)
        ours = [*own.of_census(census), self, self.__dict__, self._tensors, *self._roots.ours]
        last = optimizers(torch)
        found = _native.find_chains(targets, self._roots.groups, ours, last, most, LIMIT, base_of_arrays())
        self.objects, self.parents = found.objects, found.parents
        self._measure_ways({id(one) for one in last})
        self.ended_early = found.walked >= LIMIT
        self._holders = {id(target): holders for target, holders in zip(targets, found.holders)}
        if graphs:
            self._find_graphs()

    def _targets(self, storages: Iterable[Storage], graphs: bool) -> list[Any]:
        """The tensors, those that they are part of, and all that have a graph where something is saved."""
        found: dict[int, Any] = {}
        for storage in storages:
            for tensor in storage.tensors or [storage.bare]:
                found[id(tensor)] = tensor
                found.update((id(whole), whole) for whole, _ in self._wholes(tensor))
        if graphs:
            found.update((id(tensor), tensor) for tensor, _ in self._with_graph())
        return [tensor for key, tensor in found.items() if key not in self._census.saved]

    def _measure_ways(self, optimizers: set[int]) -> None:
        """For each place its root and the steps from there, and whether the way leads through an optimizer."""
        self._from_root: list[tuple[int, int]] = []
        self._by_optimizer: list[bool] = []
        for place, (value, parent) in enumerate(zip(self.objects, self.parents)):
            root, steps = self._from_root[parent] if parent >= 0 else (place, -1)
            self._from_root.append((root, steps + 1))
            self._by_optimizer.append(id(value) in optimizers or (parent >= 0 and self._by_optimizer[parent]))

    def _wholes(self, tensor: Any) -> Iterable[tuple[Any, str]]:
        """What the tensor is part of, and as what."""
        part, key = "", id(tensor)
        for _ in range(_MOST_LABELS):
            whose, what = self._census.labels.get(key, (None, ""))
            if whose is None or whose not in self._tensors:
                return
            part, key = what + part, whose
            yield self._tensors[key], part

    # ---- autograd graphs ----

    def _with_graph(self) -> list[tuple[Any, Any]]:
        """Tensors and nodes by which Python may hold a graph, and the node that it begins at."""
        tensors = [one for key, one in self._tensors.items() if key not in self._census.saved]
        (pairs,) = _native.find_answers(tensors, self._torch._C.TensorBase.grad_fn)
        return pairs + [(node, node) for node in self._census.nodes]

    def _find_graphs(self) -> None:
        """Which tensor, held by Python, has the graph that a saved one or a context is in: the nearest."""
        fields: graph.Fields = {}
        held = [(tensor, node) for tensor, node in self._with_graph() if self._holders.get(id(tensor))]
        for node, source in graph.nodes_from(held):
            if self.kinds.is_context(node):
                self._graphs[id(node)] = source
            for _, holder, field in graph.saved_in(node, fields):
                data = graph.saved_data(holder, field)
                known = self._saved.get(storage_key(self._torch, data)) if self.kinds.is_tensor(data) else None
                if known is not None and len(known) < self._most:
                    known.append((source, f"saved by {name_of_type(node)}"))

    # ---- answers ----

    def ways(self, storage: Storage) -> list[Way]:
        """All that leads to a storage, the shortest first."""
        found = [way for one in storage.tensors or [storage.bare] for way in self._ways_to(one, "")]
        for tensor in storage.tensors:
            found += [way for whole, part in self._wholes(tensor) for way in self._ways_to(whole, part)]
        found += [way for source, part in self._saved[storage.key] for way in self._ways_to(source, part)]
        return sorted(found, key=self._order)

    def _order(self, way: Way) -> tuple[bool, int, bool, int, int]:
        root, steps = self._from_root[way.at]
        is_root = self.objects[way.at] is way.tensor
        group = -1 - self.parents[root]
        return way.part.startswith("saved"), group, self._by_optimizer[way.at], steps - is_root, way.at

    def root_place(self, at: int) -> int:
        """Where the way to a place begins."""
        return self._from_root[at][0]

    def _ways_to(self, tensor: Any, part: str) -> list[Way]:
        found = []
        for at in self._holders.get(id(tensor), ()):
            variables = len(self._variables_of(at)) if self.objects[at] is tensor else 1
            found += [Way(at, tensor, part, number) for number in range(max(variables, 1))]
        return found

    def _variables_of(self, place: int) -> list[Root]:
        return self._roots.named.get(id(self.objects[place]), []) if self.parents[place] < 0 else []

    def nobody(self, storage: Storage) -> str:
        """In words, that nothing leads to a storage: the kind of node that has saved it is what is known then."""
        labels = [self._census.labels[id(one)][1] for one in storage.tensors if id(one) in self._census.saved]
        return f"{NO_SOURCE} ({labels[0]})" if labels else NOBODY

    def is_by_optimizer(self, way: Way) -> bool:
        """Whether an optimizer holds it: never the reason why a parameter lives."""
        return self._by_optimizer[way.at]

    def path(self, at: int) -> list[int]:
        """The places of a chain, from its root on."""
        places = []
        while at >= 0:
            places.append(at)
            at = self.parents[at]
        return places[::-1]

    def root(self, place: int, variable: int = 0) -> Root | None:
        """What is known of the root at a place: the first of its variables, or another one."""
        value, group = self.objects[place], -1 - self.parents[place]
        given = len(self._roots.groups)
        if group >= given:
            where, frees = (OUTSIDE, GARBAGE, GARBAGE)[group - given]
            return Root(value, f"a {name_of_type(value)}", where, frees)
        if group == given - 1:
            return Root(value, f"ctx of {name_of_type(value)}", self._graph_of(value))
        known = self._variables_of(place)
        return known[variable] if known else None

    def _graph_of(self, context: Any) -> str:
        source = self._graphs.get(id(context))
        at = next(iter(self._holders.get(id(source), ())), None)
        return "in an autograd graph" if at is None else f"in the graph of: {self.text(Way(at, source))}"

    def text(self, way: Way, container: int | None = None) -> str:
        """A way in words, or the chain to a container on it."""
        places = self.path(way.at)
        if container is not None:
            places = places[: places.index(container) + 1]
        objects = [self.objects[place] for place in places]
        if container is None and objects[-1] is not way.tensor:
            objects.append(way.tensor)
        root = self.root(places[0], way.variable)
        text = text_of(objects, root, self.kinds)
        return f"{text} (freed by: {root.frees})" if root is not None and root.frees else text

    def line(self, way: Way) -> str:
        """A way in words, with what it holds of the storage."""
        text = self.text(way)
        if way.part.startswith("saved"):
            return f"{way.part} in the graph of: {text}"
        return f"{way.part} of {text}" if way.part else text
