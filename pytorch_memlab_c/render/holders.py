"""Holders as text and as a DataFrame: who holds the peak, and allocations that failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..data.device_names import device_order
from ..data.holder_types import AUTOGRAD, BACKWARD, ELSEWHERE, Holder, HolderRecords, OutOfMemory, PeakHolders
from ..data.tables import Table
from ..data.torch_abi import segment_for
from .lines import ALARM, FAINT, TITLE, Block, Line, joined, plain
from .text import clean, clean_code, place_of, readable_size

if TYPE_CHECKING:
    import pandas

#: Lines shown of a peak, and of a failed allocation; the others are one row.
PEAK_LINES, FAILURE_LINES = 5, 3
_LONGEST_CODE = 60
#: More failures than that are a table.
_MOST_IN_FULL = 2


def devices_of(tables: Iterable[Table]) -> set[str]:
    """The devices that a report's tables show."""
    return {device for table in tables for device in table.devices}


def peaks_shown(records: HolderRecords, devices: Collection[str]) -> list[PeakHolders]:
    """The peaks of the devices shown, where anything was allocated."""
    shown = [peak for peak in records.peaks if peak.device in devices and peak.peak > 0]
    return sorted(shown, key=lambda peak: device_order(peak.device))


def render_holders(records: HolderRecords, devices: Collection[str]) -> str:
    """`holders_blocks` as text."""
    return plain(joined(holders_blocks(records, devices)))


def holders_blocks(records: HolderRecords, devices: Collection[str]) -> list[Block]:
    """The text above the tables; empty where there is nothing. Failed allocations are those of every device."""
    blocks = [_peak_block(peak) for peak in peaks_shown(records, devices)]
    blocks += _failures_blocks(records)
    return blocks + [[Line(f"note: {clean(note)}", FAINT)] for note in notes_shown(records, devices)]


def notes_shown(records: HolderRecords, devices: Collection[str]) -> tuple[str, ...]:
    """Why less may be reported than was asked for; none of it applies to CPU tensors alone."""
    about = any(device.startswith("cuda") for device in devices) or peaks_shown(records, devices)
    return records.notes if about or records.out_of_memory else ()


def place(holder: Holder) -> str:
    """Where: ``file.py:12 in function``, or the kind of holder. A cell's own lines name the cell once."""
    if holder.kind == ELSEWHERE:
        return "elsewhere: outside of the profiled functions, or before profiling"
    if holder.kind == AUTOGRAD:
        return "autograd, while several threads ran profiled functions"
    backward = ", in backward" if holder.kind == BACKWARD else ""
    return f"{place_of(holder.filename, holder.line, holder.function)}{backward}"


def _at(holder: Holder) -> str:
    return "outside of the profiled functions" if holder.kind == ELSEWHERE else f"at {place(holder)}"


def peak_title(peak: PeakHolders) -> str:
    """How much, of what, and where."""
    scope = " (tensor bytes)" if peak.device == "cpu" else ""
    return f"Peak of {peak.device}{scope}: {readable_size(peak.peak)}, {_at(peak.at)}"


def _peak_block(peak: PeakHolders) -> Block:
    rows = [Line(row, row=True) for row in _rows(peak.holders, peak.peak, PEAK_LINES)]
    return [Line(f"{peak_title(peak)}. Held by:", TITLE), *rows]


def folded(holders: Sequence[Holder], lines: int) -> tuple[list[Holder], int, int]:
    """The largest lines and the row elsewhere; then how many lines are left out, and their bytes."""
    named = [holder for holder in holders if holder.kind != ELSEWHERE]
    rest = named[lines:] if len(named) > lines + 1 else []  # one line more takes no more room than its summary
    elsewhere = [holder for holder in holders if holder.kind == ELSEWHERE]
    return named[: len(named) - len(rest)] + elsewhere, len(rest), sum(holder.bytes for holder in rest)


def _rows(holders: Sequence[Holder], total: int, lines: int) -> Iterator[str]:
    shown, left_out, rest = folded(holders, lines)
    named = [holder for holder in shown if holder.kind != ELSEWHERE]
    rows = [(holder.bytes, place(holder), _code(holder)) for holder in named]
    if left_out:
        rows.append((rest, f"{left_out} more lines", ""))
    rows += [(holder.bytes, place(holder), "") for holder in shown if holder.kind == ELSEWHERE]
    width = max((len(readable_size(size)) for size, _, _ in rows), default=0)
    names = max((len(name) for _, name, code in rows if code), default=0)
    for size, name, code in rows:
        share = f"{100 * size / total:5.1f}%" if total else ""
        yield f"  {readable_size(size):>{width}} {share}  {name:{names}}  {code}".rstrip()


def _code(holder: Holder) -> str:
    code = clean_code(holder.code or "")
    return code if len(code) <= _LONGEST_CODE else code[: _LONGEST_CODE - 3] + "..."


# ---- failed allocations ----


def _failures_blocks(records: HolderRecords) -> list[Block]:
    """A table of many failures, as of a search, and those that are shown in full, with their holders."""
    failures = records.out_of_memory
    blocks = [_tries_block(failures)] if is_search(records) else []
    blocks += [_failure_block(failure) for failure in shown_in_full(records)]
    if records.failures > len(failures):
        blocks.append([Line(f"Out of memory {records.failures - len(failures)} more times", ALARM)])
    return blocks


def is_search(records: HolderRecords) -> bool:
    """Whether so many tries failed that a table says more than a text for each."""
    return len(records.out_of_memory) > _MOST_IN_FULL


def shown_in_full(records: HolderRecords) -> tuple[OutOfMemory, ...]:
    """Where it is a search, the last one alone."""
    return records.out_of_memory[-1:] if is_search(records) else records.out_of_memory


TRIES_HEADER = ("asked for", "allocated", "free", "where", "code")


def tries_title(failures: Sequence[OutOfMemory]) -> str:
    """The heading of the table."""
    return f"Out of memory {len(failures)} times; the last one in full below"


def tries_rows(failures: Sequence[OutOfMemory]) -> list[tuple[str, ...]]:
    """A row for each, in their order, as `TRIES_HEADER`."""
    return [_try_row(failure) for failure in failures]


def _try_row(failure: OutOfMemory) -> tuple[str, ...]:
    inner = failure.innermost or failure.at
    sizes = (readable_size(size) for size in (failure.asked, failure.allocated, failure.unused))
    return (*sizes, f"{failure.device}, {_at(inner)}", _code(inner))


def _tries_block(failures: Sequence[OutOfMemory]) -> Block:
    rows = [TRIES_HEADER, *tries_rows(failures)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row[:3], widths)), row[3].ljust(widths[3]), row[4]])
        for row in rows
    ]
    return [Line(f"{tries_title(failures)}:", ALARM), *(Line(f"  {line}".rstrip(), row=True) for line in lines)]


def failure_text(failure: OutOfMemory) -> str:
    """The line that failed, what was asked for and what there was, and what would have made it fit."""
    return plain(_failure_lines(failure))


def _failure_lines(failure: OutOfMemory) -> Block:
    head, *at = _failed_at(failure)
    reasons = [f"  {text}" for text in (_amounts(failure), *what_would_fit(failure))]
    return [Line(head, ALARM), *(Line(text, row=True) for text in at), *map(Line, reasons)]


def _failure_block(failure: OutOfMemory) -> Block:
    held = [f"  {row}" for row in _rows(failure.holders, failure.active, FAILURE_LINES)]
    rows = [Line("  Held then by:"), *(Line(row, row=True) for row in held)]
    return _failure_lines(failure) + (rows if held else [])


def _failed_at(failure: OutOfMemory) -> list[str]:
    """The program's line that failed and, where that is not profiled, the profiled line around it, if any."""
    inner, at = failure.innermost, failure.at
    profiled = at.kind != ELSEWHERE
    if inner is None or (profiled and (inner.filename, inner.line) == (at.filename, at.line)):
        return [f"Out of memory on {failure.device} {_at(at)}", *_marked(at)]
    head = f"Out of memory on {failure.device} at {place(inner)}, which is not profiled"
    around = [f"  called by {place(at)}", *_marked(at)] if profiled else []
    return [head, *_marked(inner), *around]


def _marked(holder: Holder) -> list[str]:
    return [f"  > {clean_code(holder.code)}"] if holder.code else []


def _amounts(failure: OutOfMemory) -> str:
    parts = [f"asked for {readable_size(failure.asked)}", f"{readable_size(failure.allocated)} allocated"]
    if failure.reserved is not None:
        parts.append(f"{readable_size(failure.reserved)} reserved")
    if failure.total is not None:
        parts.append(f"{readable_size(failure.unused)} of the device's {readable_size(failure.total)} free")
    return ", ".join(parts)


def what_would_fit(failure: OutOfMemory) -> list[str]:
    """Why it failed, if not for want of memory alone, and which holders are large enough."""
    if failure.reserved is None or failure.unused is None:
        return []
    gaps = failure.reserved - failure.active
    missing = segment_for(failure.asked) - failure.unused
    if missing > failure.reserved:
        return [_cannot_fit(failure)]
    reasons = []
    if gaps >= failure.asked:
        reasons.append(
            f"fragmentation: {readable_size(gaps)} ({100 * gaps / failure.reserved:.1f}% of reserved) were not "
            "allocated, but in pieces too small; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help"
        )
    if missing > 0:
        less = min(missing, failure.active)
        return [*reasons, f"it would fit with {readable_size(less)} less held", *_enough(failure, less)]
    return [
        "the device had room for it: this process may not take more (torch.cuda.set_per_process_memory_fraction)",
        *_enough(failure, failure.asked),
    ]


def _cannot_fit(failure: OutOfMemory) -> str:
    """Why it fails even if nothing is held: unused and reserved memory is all that this process can have."""
    assert failure.reserved is not None and failure.unused is not None
    if failure.total is not None and failure.asked > failure.total:
        return f"it cannot fit: the device has {readable_size(failure.total)} in all"
    most = failure.reserved + failure.unused
    return f"it cannot fit: with nothing else held, this process could have {readable_size(most)}"


def _enough(failure: OutOfMemory, missing: int) -> list[str]:
    """How many of the largest holders are as large as what was missing."""
    held = 0
    named = [holder for holder in failure.holders if holder.kind != ELSEWHERE]
    for count, holder in enumerate(named, 1):
        held += holder.bytes
        if held >= missing > 0:
            return [f"the {'largest line holds' if count == 1 else f'{count} largest lines hold'} that much"]
    return []


# ---- DataFrame ----


def holders_frame(records: HolderRecords) -> pandas.DataFrame:
    """One row a holder of a device's peak, the largest first.

    Columns: ``device``, ``function``, ``file``, ``line``, ``kind``, ``bytes``, ``share`` (of the peak, 0 to 1),
    ``code``. A device's ``bytes`` add up to its peak, which ``attrs["peaks"]`` has by device, too.
    """
    import pandas

    rows = [(peak, holder) for peak in records.peaks for holder in peak.holders]
    columns = {
        "device": pandas.array([peak.device for peak, _ in rows], dtype="string"),
        "function": pandas.array([holder.function for _, holder in rows], dtype="string"),
        "file": pandas.array([holder.filename for _, holder in rows], dtype="string"),
        "line": pandas.array([holder.line for _, holder in rows], dtype="Int64"),
        "kind": pandas.array([holder.kind for _, holder in rows], dtype="string"),
        "bytes": pandas.array([holder.bytes for _, holder in rows], dtype="Int64"),
        "share": pandas.array([holder.bytes / peak.peak for peak, holder in rows], dtype="Float64"),
        "code": pandas.array([holder.code for _, holder in rows], dtype="string"),
    }
    frame: pandas.DataFrame = pandas.DataFrame(columns)
    frame.attrs["peaks"] = {peak.device: peak.peak for peak in records.peaks}
    frame.attrs["notes"] = list(records.notes)
    return frame
