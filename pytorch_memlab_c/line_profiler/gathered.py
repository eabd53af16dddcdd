"""What `@profile` has gathered, of all decorated functions together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..data.holder_types import HolderRecords
from ..data.tables import Table, build_tables
from ..render.holders import devices_of, holders_blocks
from ..render.holders_html import holders_fragment
from ..render.html import render_fragment
from ..render.lines import joined, plain
from ..render.report import places_of_peaks, tables_text
from ..render.sections import sections_blocks, sections_html
from .records import LineRecords

NOTHING_DECORATED = "nothing was gathered: decorate functions with @profile, and call them"


class Gathered(NamedTuple):
    """The records of functions that are shown in the same way."""

    records: LineRecords
    columns: tuple[str, ...] | None

    def tables(self) -> list[Table]:
        """One for each function."""
        return build_tables(self.records, columns=self.columns)


class GatheredDisplay:
    """Shows itself: HTML with bars in a notebook, text elsewhere. Who holds the peak is said once, of all of them."""

    def __init__(self, gathered: Sequence[Gathered], holders: HolderRecords) -> None:
        self._gathered = list(_without_repeated_notes(gathered))
        self._holders = holders
        self._devices = {d for one in gathered for d in devices_of(build_tables(one.records, columns=()))}

    def parts(self) -> Iterator[str]:
        """The text, part by part: what stands above the tables, and the tables."""
        sections = sections_blocks(*(one.records for one in self._gathered))
        summary = plain(joined([*holders_blocks(self._holders, self._devices), *sections]))
        if summary:
            yield f"{summary}\n"
        for one in self._gathered:
            yield tables_text(one.records, one.tables(), places_of_peaks(self._holders))

    def __str__(self) -> str:
        return "".join(f"{part}\n" for part in self.parts()) or f"{NOTHING_DECORATED}\n"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        holders = [holders_fragment(self._holders, self._devices)]
        fragments = []
        for one in reversed(self._gathered):
            below = [*holders, sections_html(one.records)]
            fragments.append(render_fragment(one.tables(), one.records.notes, below=below))
            holders = []
        return "".join(reversed(fragments)) or f"<p>{NOTHING_DECORATED}</p>"


def _without_repeated_notes(gathered: Sequence[Gathered]) -> Iterator[Gathered]:
    """What is about the CUDA device is said once; other notes are about one function."""
    told: set[str] = set()
    for one in gathered:
        news = tuple(note for note in one.records.notes if note not in told)
        told.update(note for note in news if note.startswith("CUDA"))
        yield Gathered(dataclasses.replace(one.records, notes=news), one.columns)
