"""Reserved and not allocated: where the free pieces are, and which blocks pin their segments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy

from .holding import ordered
from .memory import DeviceMemory
from .moments import Wanted
from .places import BEFORE, Place, Places
from .report_types import Pinned, Pool, Reserve

#: A segment is nearly empty below this part; so many of them are named.
_NEARLY_EMPTY = 0.25
_MOST_PINNED = 8


def build_reserves(memory: DeviceMemory, places: Places, wanted: Iterable[Wanted]) -> tuple[Reserve, ...]:
    """For the moments given; nothing where the file does not say which segments there are."""
    moments = sorted(wanted, key=lambda moment: moment.number)
    if not memory.has_segments or memory.is_host or not moments:
        return ()
    spans = [memory.spans(moment.number) for moment in moments]
    in_use = any(bool(found["expandable"].any()) for found in spans)
    expandable = None if in_use else memory.expandable([moment.number for moment in moments])
    built = {
        moment: _reserve(memory, places, moment, found, None if expandable is None else expandable[i])
        for i, (moment, found) in enumerate(zip(moments, spans))
    }
    return tuple(built[moment] for moment in wanted)


class _Laid:
    """The spans of a moment with the live blocks in each, and the free pieces between them."""

    def __init__(self, spans: numpy.ndarray, live: numpy.ndarray) -> None:
        self.spans = spans
        self.live = live[numpy.argsort(live["address"], kind="stable")]
        addresses = self.live["address"]
        self.first = numpy.searchsorted(addresses, spans["start"])
        self.last = numpy.searchsorted(addresses, spans["end"])
        self.size = (spans["end"] - spans["start"]).astype("i8")
        sums = numpy.concatenate([[0], numpy.cumsum(self.live["size"].astype("i8"))])
        self.active = sums[self.last] - sums[self.first]

    def largest_free(self, span: int) -> int:
        blocks = self.live[self.first[span] : self.last[span]]
        starts = numpy.append(blocks["address"], self.spans["end"][span]).astype("i8")
        ends = numpy.insert((blocks["address"] + blocks["size"]).astype("i8"), 0, self.spans["start"][span])
        return max(0, int((starts - ends).max()))


def _reserve(
    memory: DeviceMemory, places: Places, moment: Wanted, spans: numpy.ndarray, expandable: int | None
) -> Reserve:
    laid = _Laid(spans, memory.live(moment.number))
    by_pool: dict[tuple[str, int], list[int]] = defaultdict(list)
    for span in range(len(spans)):
        by_pool[_pool_of(memory, spans, span)].append(span)
    pools = [_pool(laid, name, stream, members) for (name, stream), members in by_pool.items()]
    levels = memory.levels_at(moment.number)
    return Reserve(
        moment.kind,
        moment.number,
        levels.reserved,
        levels.active,
        tuple(sorted(pools, key=lambda pool: -pool.free)),
        _pinned(memory, places, laid),
        expandable,
    )


def _pool_of(memory: DeviceMemory, spans: numpy.ndarray, span: int) -> tuple[str, int]:
    """A pool's name and stream: the default pools have small and large segments apart, private ones a number."""
    stream, first, second, _, _ = memory.settings[spans["setting"][span]]
    size = int(spans["end"][span] - spans["start"][span])
    kind = "expandable" if spans["expandable"][span] else "small" if size <= 2 << 20 else "large"
    return (kind if not first and not second else f"private {first},{second} {kind}"), stream


def _pool(laid: _Laid, name: str, stream: int, spans: list[int]) -> Pool:
    size, active = laid.size[spans], laid.active[spans]
    empty = [span for span in spans if not laid.active[span]]
    return Pool(
        name,
        stream,
        len(spans),
        int(size.sum()),
        int(active.sum()),
        int((size - active).sum()),
        max(laid.largest_free(span) for span in spans),
        len(empty),
        int(laid.size[empty].sum()),
    )


def _pinned(memory: DeviceMemory, places: Places, laid: _Laid) -> tuple[Pinned, ...]:
    """The segments with most free bytes among those that little keeps."""
    nearly = numpy.flatnonzero(
        (laid.active > 0) & (laid.active < laid.size * _NEARLY_EMPTY) & (laid.spans["expandable"] == 0)
    )
    most = nearly[numpy.argsort(-(laid.size - laid.active)[nearly], kind="stable")][:_MOST_PINNED]
    return tuple(_pin(memory, places, laid, int(span)) for span in most)


def _pin(memory: DeviceMemory, places: Places, laid: _Laid, span: int) -> Pinned:
    name, stream = _pool_of(memory, laid.spans, span)
    sums: dict[Place, list[int]] = defaultdict(lambda: [0, 0])
    for block in laid.live[laid.first[span] : laid.last[span]]:
        unknown = not block["stack"] and not block["made"]
        entry = sums[places.places[BEFORE if unknown else int(places.of_stack[block["stack"]])]]
        entry[0] += int(block["size"])
        entry[1] += 1
    return Pinned(
        int(laid.spans["start"][span]),
        int(laid.size[span]),
        int(laid.active[span]),
        name,
        stream,
        laid.largest_free(span),
        ordered(sums),
    )
