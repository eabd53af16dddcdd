"""What kept the largest tensors alive, in words: a part of the records of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

#: When it was found out.
OUT_OF_MEMORY, AT_THE_END = "when memory ran out", "at the end"


class KeptBy(NamedTuple):
    """Tensors that one thing keeps alive: ``keeper`` is the chain of objects to a variable, in words."""

    device: str
    bytes: int
    tensors: int
    keeper: str


@dataclass(frozen=True)
class KeeperRecords:
    """The largest, for each device the largest first; ``when`` is "" where they were not looked for."""

    when: str = ""
    kept: tuple[KeptBy, ...] = ()


def to_json(records: KeeperRecords) -> dict[str, Any]:
    """As values that ``json`` can write; rows are arrays in the order of ``fields``."""
    return {"when": records.when, "fields": list(KeptBy._fields), "kept": [list(row) for row in records.kept]}


def from_json(document: dict[str, Any] | None) -> KeeperRecords:
    """From such values; None: an older report, without them."""
    if document is None:
        return KeeperRecords()
    rows = (dict(zip(document["fields"], row)) for row in document["kept"])
    return KeeperRecords(document["when"], tuple(KeptBy(**row) for row in rows))
