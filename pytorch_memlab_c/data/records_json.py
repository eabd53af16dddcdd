"""The JSON form of records, version 1: exact in both directions, ASCII only.

``stats`` are arrays in the order of the top-level ``fields``, so that a file explains itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from . import holder_types, keeper_types, run_info
from .declared_types import require_declared, shortened
from .growth import History
from .record_types import FunctionRecord, LineRecord, Stats
from .records import Records
from .rising import Stretch
from .saved_types import Saved

VERSION = 1


class Fields(NamedTuple):
    """What a document's arrays mean: the names of the values in `stats` and in `saved`, and how growth is read."""

    stats: list[str]
    saved: list[str]
    history: Callable[[Any], History | None]


def dumps(records: Records) -> str:
    """The records as JSON text."""
    document = {
        "version": VERSION,
        "tool": "pytorch_memlab_c",
        "device": records.device,
        "target": records.target,
        "extra_columns": list(records.extra_columns),
        "notes": list(records.notes),
        "all_threads": records.all_threads,
        "fields": list(Stats._fields),
        "saved": records.saved,
        "saved_fields": list(Saved._fields),
        "growth_fields": {"history": list(History._fields), "stretch": list(Stretch._fields)},
        "functions": [_function_to_json(function) for function in records.functions],
        "holders": holder_types.to_json(records.holders),
        "keepers": keeper_types.to_json(records.keepers),
        "run": run_info.to_json(records.run),
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


def loads(text: str) -> dict[str, Any]:
    """The fields of ``Records`` from JSON text.

    Raises:
        ValueError: it is no report of this tool, or one of a newer version.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not a report of pytorch_memlab_c: no JSON ({error})") from None
    _check_version(document)
    try:
        found = _fields_from_json(document)
        require_declared(Records(**found))
        return found
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a damaged report of pytorch_memlab_c: {shortened(repr(error), 160)}") from error


def _check_version(document: Any) -> None:
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int or version < 1:
        raise ValueError("not a report of pytorch_memlab_c: it has no version field")
    if version > VERSION:
        raise ValueError(
            f"the report has version {shortened(repr(version), 20)}, this pytorch_memlab_c reads up to {VERSION}: "
            "a newer one wrote it, upgrade to load it"
        )


def _function_to_json(function: FunctionRecord) -> dict[str, Any]:
    return {
        "qualname": function.qualname,
        "module": function.module,
        "filename": function.filename,
        "first_line": function.first_line,
        "def_line": function.def_line,
        "source": None if function.source is None else list(function.source),
        "calls": function.calls,
        "lines": [_line_to_json(line) for line in function.lines],
    }


def _line_to_json(line: LineRecord) -> dict[str, Any]:
    stats = {device: list(values) for device, values in line.stats.items()}
    document = {"line": line.line, "hits": line.hits, "charged": list(line.charged), "stats": stats}
    if line.saved:
        document["saved"] = {device: list(values) for device, values in line.saved.items()}
    return document


def _fields_from_json(document: dict[str, Any]) -> dict[str, Any]:
    older = "gross" in document.get("growth_fields", {}).get("history", ())
    history = History.of_older if older else History.of
    fields = Fields(document["fields"], document.get("saved_fields", []), history)
    return {
        "functions": tuple(_function_from_json(f, fields) for f in document["functions"]),
        "extra_columns": tuple(document["extra_columns"]),
        "device": document["device"],
        "target": document["target"],
        "notes": tuple(document["notes"]),
        "holders": holder_types.from_json(document.get("holders")),
        "saved": bool(document.get("saved", False)),
        "all_threads": bool(document.get("all_threads", True)),
        "keepers": keeper_types.from_json(document.get("keepers")),
        "run": run_info.from_json(document.get("run")),
    }


def _function_from_json(function: dict[str, Any], fields: Fields) -> FunctionRecord:
    source = function["source"]
    return FunctionRecord(
        function["qualname"],
        function["module"],
        function["filename"],
        function["first_line"],
        function["def_line"],
        None if source is None else tuple(source),
        function["calls"],
        tuple(_line_from_json(line, fields) for line in function["lines"]),
    )


def _line_from_json(line: dict[str, Any], fields: Fields) -> LineRecord:
    stats = {device: _stats_from_json(values, fields) for device, values in line["stats"].items()}
    saved = {device: Saved(**dict(zip(fields.saved, values))) for device, values in line.get("saved", {}).items()}
    return LineRecord(line["line"], line["hits"], tuple(line["charged"]), stats, saved)


def _stats_from_json(values: list[Any], fields: Fields) -> Stats:
    stats = Stats(**dict(zip(fields.stats, values)))
    extra = None if stats.extra is None else tuple(stats.extra)
    return stats._replace(extra=extra, growth=fields.history(stats.growth))
