"""Holders as HTML: the peak split by line, its plot over the run, and allocations that failed.

One fragment for notebooks and pages alike, from ``templates/holders.html.j2``; all text is escaped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..data.holder_types import ELSEWHERE, Holder, HolderRecords, OutOfMemory, PeakHolders
from .holders import (
    FAILURE_LINES,
    TRIES_HEADER,
    failure_text,
    folded,
    is_search,
    notes_shown,
    peak_title,
    peaks_shown,
    place,
    shown_in_full,
    tries_rows,
    tries_title,
)
from .html import COLORS, template
from .text import clean_code, readable_size

if TYPE_CHECKING:
    from markupsafe import Markup

#: Lines of a bar that have a colour each; the others are one grey part.
BAR_LINES = 8
PLOT_WIDTH, PLOT_HEIGHT = 256, 48
_GREY = (128, 128, 128)


#: The anchors of a page's lines, by function, file and line.
Anchors = Mapping[tuple[Any, ...], str]


def holders_fragment(records: HolderRecords, devices: Collection[str], anchors: Anchors | None = None) -> Markup:
    """The holders of the devices shown, and all allocations that failed; empty where there is nothing to show.

    With ``anchors`` it is a part of a page and links to them, otherwise a notebook's.
    """
    from markupsafe import Markup  # loaded for HTML alone

    peaks = [_peak(peak, anchors or {}) for peak in peaks_shown(records, devices)]
    failures = [_failure(failure, anchors or {}) for failure in shown_in_full(records)]
    more = records.failures - len(records.out_of_memory)
    tries = _tries(records.out_of_memory) if is_search(records) else None
    notes = notes_shown(records, devices)
    if not peaks and not failures and not notes:
        return Markup("")
    context = {
        "peaks": peaks,
        "tries": tries,
        "failures": failures,
        "more": more,
        "notes": notes,
        "page": anchors is not None,
    }
    return Markup(template("holders.html.j2").render(width=PLOT_WIDTH, height=PLOT_HEIGHT, **context))


def _peak(peak: PeakHolders, anchors: Anchors) -> dict[str, Any]:
    return {
        "title": peak_title(peak),
        "exact": f"{peak.peak:,} bytes",
        "rows": _rows(peak.holders, peak.peak, BAR_LINES, anchors),
        "plot": _plot(peak.series, peak.peak),
        "plot_title": f"from 0 to {readable_size(peak.peak)}, over the run; {_points(peak.step)}",
    }


def _points(step: int) -> str:
    each = "allocation and free" if step == 1 else f"{step} allocations and frees"
    return f"a point for each {each}"


def _rows(holders: Sequence[Holder], total: int, lines: int, anchors: Anchors) -> list[dict[str, Any]]:
    shown, left_out, rest = folded(holders, lines)
    named = [holder for holder in shown if holder.kind != ELSEWHERE]
    colors = [*COLORS[:-1], *[_GREY] * len(named)]
    rows = [
        {**_row(place(h), h.bytes, total, colors[i], h.code), "anchor": anchors.get((h.function, h.filename, h.line))}
        for i, h in enumerate(named)
    ]
    if left_out:
        rows.append(_row(f"{left_out} more lines", rest, total, _GREY))
    return rows + [_row(place(h), h.bytes, total, (200, 200, 200)) for h in shown if h.kind == ELSEWHERE]


def _row(name: str, size: int, total: int, color: tuple[int, int, int], code: str | None = None) -> dict[str, Any]:
    share = 100 * size / total if total else 0.0
    return {
        "name": name,
        "size": readable_size(size),
        "exact": f"{size:,} bytes",
        "share": f"{share:.1f}%",
        "percent": round(max(share, 0.0), 2),
        "color": f"rgb{color}",
        "code": clean_code(code or ""),
    }


def _plot(series: Sequence[int], peak: int) -> str:
    """The points of an SVG polygon below the values, each point as wide as the others."""
    if not series or peak <= 0:
        return ""
    step = PLOT_WIDTH / len(series)
    points = [f"0,{PLOT_HEIGHT}"]
    for i, value in enumerate(series):
        height = round(PLOT_HEIGHT * (1 - max(value, 0) / peak), 1)
        points += [f"{round(i * step, 1)},{height}", f"{round((i + 1) * step, 1)},{height}"]
    return " ".join([*points, f"{PLOT_WIDTH},{PLOT_HEIGHT}"])


def _tries(failures: Sequence[OutOfMemory]) -> dict[str, Any]:
    return {"title": tries_title(failures), "header": TRIES_HEADER, "rows": tries_rows(failures)}


def _failure(failure: OutOfMemory, anchors: Anchors) -> dict[str, Any]:
    head, *lines = failure_text(failure).rstrip("\n").split("\n")
    return {
        "title": head,
        "lines": [line.strip() for line in lines],
        "rows": _rows(failure.holders, failure.active, FAILURE_LINES, anchors),
    }
