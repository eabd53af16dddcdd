"""Who holds how much at a moment: by line, by function, and as a tree of calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .memory import DeviceMemory
from .moments import Wanted
from .places import BEFORE, NO_STACK, Place, Places
from .report_types import Call, Held, Moment

#: Of a tree, branches with less than this part of the whole are left out.
_LEAST_PART = 0.01


def build_moment(memory: DeviceMemory, places: Places, wanted: Wanted) -> Moment:
    """All about one moment."""
    by_stack = memory.bytes_by_stack(wanted.number)
    levels = memory.levels_at(wanted.number)
    failed = places.places[places.of_stack[wanted.stack]] if wanted.kind == "oom" else None
    return Moment(
        wanted.kind,
        wanted.number,
        memory.seconds(wanted.number),
        levels,
        _by_line(places, by_stack),
        _by_function(places, by_stack),
        _tree(places, by_stack, int(levels.active * _LEAST_PART)),
        wanted.asked,
        wanted.device_free,
        failed,
    )


def ordered(sums: dict[Place, list[int]]) -> tuple[Held, ...]:
    """The most bytes first."""
    held = [Held(place, size, blocks) for place, (size, blocks) in sums.items() if size]
    return tuple(sorted(held, key=lambda entry: (-entry.bytes, entry.place)))


def _by_line(places: Places, by_stack: dict[int, tuple[int, int]]) -> tuple[Held, ...]:
    sums: dict[Place, list[int]] = defaultdict(lambda: [0, 0])
    for stack, (size, blocks) in by_stack.items():
        group = BEFORE if stack < 0 else int(places.of_stack[stack])
        _add(sums[places.places[group]], size, blocks)
    return ordered(sums)


def _add(entry: list[int], size: int, blocks: int) -> None:
    entry[0] += size
    entry[1] += blocks


def _function(place: Place) -> Place:
    return place._replace(line=0)


def _by_function(places: Places, by_stack: dict[int, tuple[int, int]]) -> tuple[Held, ...]:
    """Each function once for every block, however often it is in the stack."""
    sums: dict[Place, list[int]] = defaultdict(lambda: [0, 0])
    for stack, (size, blocks) in by_stack.items():
        for function in {_function(place) for place in _calls(places, stack)}:
            _add(sums[function], size, blocks)
    return ordered(sums)


def _calls(places: Places, stack: int) -> list[Place]:
    """The lines of a stack, the outermost first."""
    if stack <= 0:
        return [places.places[BEFORE if stack < 0 else NO_STACK]]
    return [places.place_of_frame(frame) for frame in places.calls(stack)]


class _Node:
    def __init__(self) -> None:
        self.bytes = self.blocks = 0
        self.calls: dict[Place, _Node] = defaultdict(_Node)


def _tree(places: Places, by_stack: dict[int, tuple[int, int]], least: int) -> tuple[Call, ...]:
    root = _Node()
    for stack, (size, blocks) in by_stack.items():
        node = root
        for place in _calls(places, stack):
            node = node.calls[place]
            node.bytes += size
            node.blocks += blocks
    return _frozen(root.calls.items(), max(least, 1))


def _frozen(calls: Iterable[tuple[Place, _Node]], least: int) -> tuple[Call, ...]:
    shown = [(place, node) for place, node in calls if node.bytes >= least]
    shown.sort(key=lambda call: (-call[1].bytes, call[0]))
    return tuple(Call(place, n.bytes, n.blocks, _frozen(n.calls.items(), least)) for place, n in shown)
