"""The first lines of a report: what was run, and on what."""

from __future__ import annotations

from collections import Counter

from ..data.holder_types import BACKWARD, Holder
from ..data.records import Records
from ..data.run_info import RunInfo
from .lines import TITLE, Block, Line
from .text import clean, place_of


def run_block(records: Records) -> Block:
    """Command, date, steps and versions; nothing where it is not known what was run."""
    run = records.run
    if run is None:
        return []
    began = [f"{run.started}, {run.seconds:.1f} s", *_rank(run), *_steps(records)]
    return [Line(clean(run.command), TITLE), Line(", ".join(began)), Line(clean(", ".join(_versions(run))))]


def _rank(run: RunInfo) -> list[str]:
    if run.rank is None:
        return []
    return [f"rank {run.rank}" + (f" of {run.ranks}" if run.ranks else "")]


def _versions(run: RunInfo) -> list[str]:
    torch = [f"PyTorch {run.torch}"] if run.torch else ["without PyTorch"]
    return [*torch, f"Python {run.python}", *_gpus(run)]


def _gpus(run: RunInfo) -> list[str]:
    if not run.gpus:
        return ["no GPU used"]
    names = [f"{count} x {name}" if count > 1 else name for name, count in Counter(run.gpus).items()]
    driver = [f"driver {run.driver}"] if run.driver else []
    return [*names, *driver, *(["simulated: kernels do not run"] if run.simulated else [])]


def _steps(records: Records) -> list[str]:
    """How often the line ran in which backward allocated most: once a training step, in most programs."""
    holders = [holder for peak in records.holders.peaks for holder in (*peak.holders, peak.at)]
    called = [holder for holder in holders if holder.kind == BACKWARD]
    if not called:
        return []
    line = max(called, key=lambda holder: holder.bytes)
    count = _hits(records, line)
    where = place_of(line.filename, line.line, line.function)
    return [f"{count} backward pass{'es' * (count != 1)} at {where}"] if count else []


def _hits(records: Records, line: Holder) -> int:
    found = [
        record.hits
        for function in records.functions
        for record in function.lines
        if (function.filename, record.line) == (line.filename, line.line)
    ]
    return max(found, default=0)
