"""What was run, where and when: the beginning of a report of the command line."""

from __future__ import annotations

from typing import Any, NamedTuple


class RunInfo(NamedTuple):
    """`started` is the local time, `2026-01-31 12:00:00`; `gpus` are the names of those that were used.

    `driver` is the version of NVIDIA's, where it is known; `torch` is None where PyTorch was not imported.
    """

    command: str
    started: str
    seconds: float
    python: str
    torch: str | None = None
    gpus: tuple[str, ...] = ()
    simulated: bool = False
    driver: str | None = None
    rank: int | None = None
    ranks: int | None = None


def to_json(run: RunInfo | None) -> dict[str, Any] | None:
    """As values that `json` can write."""
    return None if run is None else {**run._asdict(), "gpus": list(run.gpus)}


def from_json(document: dict[str, Any] | None) -> RunInfo | None:
    """What `to_json` gave; None for a report that has none."""
    return None if document is None else RunInfo(**{**document, "gpus": tuple(document["gpus"])})
