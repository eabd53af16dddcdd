"""A report about a snapshot as JSON: bytes as integers, times in seconds, names as in report_types.py."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from .places import Place
from .report_types import SnapshotReport
from .source_text import SourceText

VERSION = 1


def dumps(report: SnapshotReport) -> str:
    """The report as JSON text; every line has its text where its file is here."""
    source = SourceText(report.taken)
    document = {"version": VERSION, "tool": "pytorch_memlab_c", "kind": "snapshot", **_plain(report, source)}
    return json.dumps(document, separators=(",", ":")) + "\n"


def _plain(value: Any, source: SourceText) -> Any:
    if isinstance(value, Place):
        return _place(value, source)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name), source) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(item, source) for name, item in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item, source) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item, source) for name, item in value.items()}
    return value


def _place(place: Place, source: SourceText) -> dict[str, Any]:
    if place.kind != "line":
        return {"kind": place.kind}
    found = {"kind": place.kind, "file": place.filename, "line": place.line, "function": place.function}
    text = source.of(place)
    return {**found, "code": text, "newer": source.is_newer(place)} if text else found
