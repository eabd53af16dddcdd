"""The sections above the tables, each the largest first.

They are lines that keep growing, what kept tensors alive, and what autograd kept for backward.
A section is there only if there is something to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..data.device_names import ALL, TARGET, parse_view
from ..data.growth import Growth, growth_of
from ..data.keeper_types import KeeperRecords
from ..data.line_devices import LineOnDevice, lines_on_devices
from ..data.records import Records
from ..data.saved_types import SAVED_UNSEEN, Saved
from .html import template
from .lines import FAINT, TITLE, Block, Line
from .text import clean, clean_code, place_of, readable_size

if TYPE_CHECKING:
    from markupsafe import Markup


#: Lines shown of what autograd kept; the DataFrame has them all.
MOST_SAVED = 20
NOTHING_SAVED = (
    "autograd kept no tensor of the lines that ran: nothing in them required grad, or gradients were off "
    "(torch.no_grad)"
)


class Section(NamedTuple):
    """``rows`` as ``header``, whose last cell is left-aligned; no table if ``header`` is empty."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def sections(*records: Records, func: Any = None, device: Any = None) -> list[Section]:
    """The sections that have something to say, of all records together.

    Arguments are as for ``LineRecords.to_dataframe``.
    """
    found = [place for one in records for place in lines_on_devices(one, func, device)]
    kept = list(_saved_by_device(found)) or _nothing_saved(records, found)
    keepers = [_keepers(one.keepers, device) for one in records]
    return [section for section in (_growing(found), *keepers, *kept) if section is not None]


def sections_blocks(*records: Records, func: Any = None, device: Any = None) -> list[Block]:
    """The text of each section."""
    return [_block(section) for section in sections(*records, func=func, device=device)]


def sections_html(records: Records, func: Any = None, device: Any = None, page: bool = False) -> Markup:
    """One element a section, for a notebook or as a part of a page; empty where there is none.

    All text is escaped.
    """
    from markupsafe import Markup  # loaded for HTML alone

    found = sections(records, func=func, device=device)
    return Markup(template("sections.html.j2").render(sections=found, page=page))


# ---- growth ----


def _growing(found: Sequence[LineOnDevice]) -> Section | None:
    grown = [(place, growth_of(stats, place.device)) for place in found if (stats := place.record.on(place.device))]
    rows = [_growth_row(place, growth) for place, growth in grown if growth is not None]
    header = ("each run keeps", "runs", "held now", "where", "code")
    title = "Lines that keep more memory on every run"
    return Section(title, header, tuple(rows), ()) if rows else None


def _growth_row(place: LineOnDevice, growth: Growth) -> tuple[str, ...]:
    sizes = readable_size(growth.bytes_per_run), str(growth.runs), readable_size(growth.held)
    return *sizes, _where(place), clean_code(place.code).strip()


def _where(place: LineOnDevice) -> str:
    return f"{place.device} {_line(place)}"


def _line(place: LineOnDevice) -> str:
    return place_of(place.function.filename, place.record.line, place.label)


# ---- who keeps it ----


def _keepers(found: KeeperRecords, device: Any) -> Section | None:
    """Of all devices, unless one is asked for."""
    wanted = None if device is None else parse_view(device)
    rows = [row for row in found.kept if wanted in (None, TARGET, ALL, row.device)]
    header = ("bytes", "device", "kept alive by")
    shown = [(readable_size(row.bytes), row.device, clean(row.keeper)) for row in rows]
    return Section(f"Who keeps it, {found.when}", header, tuple(shown), ()) if rows else None


# ---- saved for backward ----


def _saved_by_device(found: Sequence[LineOnDevice]) -> Iterator[Section]:
    for device in dict.fromkeys(place.device for place in found):
        kept = [(place, place.record.saved[device]) for place in found if _has_saved(place, device)]
        if kept:
            yield _saved_section(device, sorted(kept, key=lambda pair: _weight(pair[1]), reverse=True))


def _nothing_saved(records: Iterable[Records], found: Sequence[LineOnDevice]) -> list[Section]:
    """Where it was counted and lines ran, that there is no row has a reason."""
    counted = any(one.saved and SAVED_UNSEEN not in one.notes for one in records)
    ran = any(place.record.hits for place in found)
    return [Section("Saved for backward: nothing", (), (), (NOTHING_SAVED,))] if counted and ran else []


def _has_saved(place: LineOnDevice, device: str) -> bool:
    return place.device == device and device in place.record.saved


def _weight(saved: Saved) -> tuple[int, int, int, int]:
    return saved.activations, max(saved.hooks, saved.backward), saved.inputs, saved.parameters


_SAVED_COLUMNS = {
    "saved": "activations",
    "one run": "run_max",
    "inputs": "inputs",
    "parameters": "parameters",
    "hooks": "hooks",
    "in backward": "backward",
}


def _saved_section(device: str, kept: Sequence[tuple[LineOnDevice, Saved]]) -> Section:
    used = {name: field for name, field in _SAVED_COLUMNS.items() if any(getattr(s, field) for _, s in kept)}
    rows = [_saved_row(place, saved, used.values()) for place, saved in kept[:MOST_SAVED]]
    left = f"{len(kept) - MOST_SAVED} more lines: to_dataframe(kind='saved') has them all"
    notes = [text for name, text in _SAVED_NOTES.items() if name in used] + [left] * (len(kept) > MOST_SAVED)
    total = sum(saved.activations for _, saved in kept)
    title = f"Saved for backward, {device}: {readable_size(total)} of activations"
    return Section(title, (*used, "where", "code"), tuple(rows), tuple(notes))


_SAVED_NOTES = {
    "hooks": "hooks: given to saved-tensor hooks (checkpoint, save_on_cpu) in one outermost call, "
    "instead of being kept",
    "in backward": "in backward: the most that was saved again at one time while backward ran (checkpoint)",
}


def _saved_row(place: LineOnDevice, saved: Saved, fields: Iterable[str]) -> tuple[str, ...]:
    sizes = (readable_size(value) if (value := getattr(saved, field)) else "" for field in fields)
    return (*sizes, _line(place), clean_code(place.code).strip())


# ---- showing ----


def _block(section: Section) -> Block:
    table = [section.header, *section.rows] if section.header else []
    widths = [max(len(row[i]) for row in table) for i in range(len(section.header) - 1)]
    lines = ["  ".join([*(cell.rjust(w) for cell, w in zip(row, widths)), row[-1]]).rstrip() for row in table]
    head = [Line(f"## {section.title}", TITLE), Line("")]
    return head + [Line(line, row=True) for line in lines] + [Line(f"note: {clean(n)}", FAINT) for n in section.notes]
