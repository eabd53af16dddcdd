"""A report about a snapshot as one HTML page: works offline, and is drawn from a few thousand points."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from markupsafe import Markup

from ..render.html import COLORS, share, template, template_text
from ..render.text import clean_code, readable_size
from .report_types import Call, DeviceReport, Held, LineFigures, Moment, Reserve, SnapshotReport, Timeline
from .reporting import date_of
from .source_text import SourceText
from .text import duration, failure_lines, moment_title, name_of, reserve_lines, reserve_title, summary_of

#: Rows of a page's tables; a page that lists every line of a large program would not be read.
_ROWS = 300


class Cell(NamedTuple):
    """One value: its text, the number to sort by, the tooltip, and its bar in percent."""

    text: str
    value: float | None
    title: str = ""
    percent: float = 0.0
    color: int = 0


def render_page(report: SnapshotReport, title: str = "Memory snapshot by line") -> str:
    """The page's text."""
    source = SourceText(report.taken)
    script = template_text("page.js") + "\n" + template_text("snapshot.js")
    return template("snapshot.html.j2").render(
        title=title,
        taken=date_of(report.taken),
        colors=COLORS,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        notes=report.notes,
        devices=[_device(device, source) for device in report.devices],
    )


def _device(device: DeviceReport, source: SourceText) -> dict[str, Any]:
    first = next((moment for moment in device.moments if moment.kind != "oom"), None)
    return {
        "name": device.name,
        "summary": "; ".join(summary_of(device)),
        "notes": device.notes,
        "data": _data(device.timeline, source) if device.timeline else "",
        "moments": [_moment(device, moment, source) for moment in device.moments],
        "lines": _lines(device, source) if device.events else [],
        "functions": _held(first.functions, first.levels.active, None) if first else [],
        "tree": _calls(first.tree, first.levels.active, 0) if first else [],
        "reserves": [_reserve(reserve) for reserve in device.reserve],
    }


def _moment(device: DeviceReport, moment: Moment, source: SourceText) -> dict[str, Any]:
    return {
        "title": moment_title(device, moment),
        "lines": failure_lines(device, moment, source) if moment.kind == "oom" else [],
        "rows": _held(moment.holders, moment.levels.active, source),
    }


def _held(holders: Sequence[Held], total: int, source: SourceText | None) -> list[dict[str, Any]]:
    return [
        {
            "cell": _bytes(held.bytes, total),
            "share": _share(held.bytes, total),
            "blocks": held.blocks,
            "name": clean_code(name_of(held.place)),
            "code": source.shown(held.place) if source else "",
        }
        for held in holders[:_ROWS]
    ]


def _bytes(value: int, largest: int, color: int = 0) -> Cell:
    return Cell(readable_size(value), value, f"{value:,} bytes", share(value, largest), color)


def _share(value: int, total: int) -> str:
    return f"{100 * value / total:.1f}%" if total else ""


def _lines(device: DeviceReport, source: SourceText) -> list[dict[str, Any]]:
    largest = [max(getattr(line, name) for line in device.lines) for name in ("peak", "live", "allocated")]
    return [
        {
            "cells": _line_cells(device, line, largest),
            "name": clean_code(name_of(line.place)),
            "code": source.shown(line.place),
        }
        for line in device.lines[:_ROWS]
    ]


def _line_cells(device: DeviceReport, line: LineFigures, largest: Sequence[int]) -> list[Cell]:
    life = duration(line.median_life) if device.seconds is not None else f"{line.median_life or 0:,.0f} events"
    growth = line.growth.bytes if line.growth else None
    return [
        _bytes(line.peak, largest[0], 0),
        _bytes(line.live, largest[1], 1),
        _bytes(line.allocated, largest[2], 2),
        Cell(f"{line.times:,}", line.times),
        Cell(life if line.median_life is not None else "", line.median_life),
        Cell(readable_size(growth), growth, "more at the end than after the first quarter" if growth else ""),
    ]


def _calls(calls: Iterable[Call], total: int, depth: int) -> list[dict[str, Any]]:
    return [
        {
            "size": readable_size(call.bytes),
            "share": _share(call.bytes, total),
            "title": f"{call.bytes:,} bytes in {call.blocks:,} blocks",
            "name": clean_code(name_of(call.place)),
            "open": depth < 3,
            "calls": _calls(call.calls, total, depth + 1) if depth < 60 else [],
        }
        for call in calls
    ]


def _reserve(reserve: Reserve) -> dict[str, Any]:
    return {"title": reserve_title(reserve), "lines": reserve_lines(reserve)}


def _data(timeline: Timeline, source: SourceText) -> Markup:
    """What the script draws, as JSON that cannot end its element."""
    document = {
        "moments": timeline.moments,
        "seconds": timeline.seconds,
        "allocated": timeline.allocated,
        "active": timeline.active,
        "reserved": timeline.reserved,
        "colors": COLORS,
        "layers": [
            {"name": clean_code(name_of(place)), "code": source.shown(place), "changes": _changes(values)}
            for place, values in timeline.layers
        ],
    }
    text = json.dumps(document, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _changes(values: Sequence[int]) -> list[int]:
    """The points where a layer changes, each with its value there."""
    before = (0, *values)
    return list(chain.from_iterable((i, value) for i, value in enumerate(values) if value != before[i]))
