"""Who holds a device's memory, as plain values: at the highest moment of a run, and when an allocation failed.

A holder is a source line with the bytes that are live of what it allocated. Nothing here refers to frames or tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Kinds of holders: allocated by the line itself; by autograd's threads while it waited for them; by those while
#: several lines ran that may have waited; before profiling began or outside of the profiled functions. Where an
#: allocation failed, a line of a function that is not profiled, too.
LINE, BACKWARD, AUTOGRAD, ELSEWHERE, UNPROFILED = "line", "backward", "autograd", "elsewhere", "unprofiled"


class Holder(NamedTuple):
    """A line and the bytes that it holds.

    ``function``, ``filename``, ``line`` and ``code`` are None where ``kind`` is "autograd" or "elsewhere", and ``code``
    where there is no source.
    """

    kind: str
    bytes: int
    function: str | None = None
    filename: str | None = None
    line: int | None = None
    code: str | None = None


@dataclass(frozen=True)
class PeakHolders:
    """The highest moment of one device, in bytes: active bytes on CUDA, tensor bytes on the CPU.

    ``holders`` are sorted, the largest first, and add up to ``peak``. ``at`` is the line that ran then. ``series`` is
    the value over the run: each point the highest of ``step`` allocations and frees, while profiled functions ran.
    """

    device: str
    peak: int
    at: Holder
    holders: tuple[Holder, ...]
    series: tuple[int, ...] = ()
    step: int = 1


@dataclass(frozen=True)
class OutOfMemory:
    """One allocation that failed, in bytes; None for what the device does not report.

    ``holders`` add up to ``active``. ``unused`` of ``total`` was free on the device then. ``at`` is the profiled line
    that ran, ``innermost`` the program's innermost line, profiled or not, where it is known.
    """

    device: str
    asked: int
    allocated: int
    active: int
    reserved: int | None
    unused: int | None
    total: int | None
    at: Holder
    holders: tuple[Holder, ...]
    innermost: Holder | None = None


@dataclass(frozen=True)
class HolderRecords:
    """Peaks by device, and the allocations that failed: the first ``out_of_memory`` of ``failures`` in all."""

    peaks: tuple[PeakHolders, ...] = ()
    out_of_memory: tuple[OutOfMemory, ...] = ()
    failures: int = 0
    notes: tuple[str, ...] = ()


def with_rest(holders: Iterable[Holder], total: int) -> tuple[Holder, ...]:
    """Holders of one line together, the largest first, and the rest of ``total`` as the row "elsewhere"."""
    sums: dict[tuple[Any, ...], int] = {}
    for kind, size, *line in holders:
        key = (kind, *line)
        sums[key] = sums.get(key, 0) + size
    rest = total - sum(sums.values())
    if rest:
        sums[(ELSEWHERE, None, None, None, None)] = rest
    found = [Holder(key[0], size, *key[1:]) for key, size in sums.items() if size]
    return tuple(sorted(found, key=lambda holder: -holder.bytes))


# ---- JSON ----


def to_json(records: HolderRecords) -> dict[str, Any]:
    """As values that ``json`` can write; holders are arrays in the order of ``fields``."""
    return {
        "fields": list(Holder._fields),
        "peaks": [_plain(peak) for peak in records.peaks],
        "out_of_memory": [_plain(failure) for failure in records.out_of_memory],
        "failures": records.failures,
        "notes": list(records.notes),
    }


def _plain(record: PeakHolders | OutOfMemory) -> dict[str, Any]:
    plain = {**record.__dict__, "at": list(record.at), "holders": [list(holder) for holder in record.holders]}
    if plain.get("innermost") is not None:
        plain["innermost"] = list(plain["innermost"])
    return plain


def from_json(document: dict[str, Any] | None) -> HolderRecords:
    """What ``to_json`` gave; empty for a report that is older than holders."""
    if not document:
        return HolderRecords()
    fields = document["fields"]

    def holder(values: list[Any]) -> Holder:
        return Holder(**dict(zip(fields, values)))

    def read(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for entry in entries:
            yield {**entry, "at": holder(entry["at"]), "holders": tuple(map(holder, entry["holders"]))}

    def failure(entry: dict[str, Any]) -> OutOfMemory:
        innermost = entry.get("innermost")
        return OutOfMemory(**{**entry, "innermost": innermost and holder(innermost)})

    return HolderRecords(
        tuple(PeakHolders(**{**peak, "series": tuple(peak["series"])}) for peak in read(document["peaks"])),
        tuple(map(failure, read(document["out_of_memory"]))),
        document["failures"],
        tuple(document["notes"]),
    )
