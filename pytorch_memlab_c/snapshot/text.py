"""A report about a snapshot as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..data.holder_types import ELSEWHERE, OutOfMemory
from ..data.holder_types import Holder as ProfilerHolder
from ..render.holders import what_would_fit
from ..render.text import clean, place_of, readable_size, right_column
from .places import Place
from .report_types import Call, DeviceReport, Held, LineFigures, Moment, Pool, Reserve, SnapshotReport
from .reporting import date_of
from .source_text import SourceText

#: Rows that are shown; the others are summed in one.
LINES, HOLDERS, FUNCTIONS = 20, 12, 8
_DEEPEST, _LEAST_BRANCH = 12, 0.05
_LONGEST_CODE = 70

_KINDS = {
    "before": "before the recording",
    "no stack": "no Python stack: backward threads, C++, or not recorded",
}


def name_of(place: Place) -> str:
    """A line, a function (line 0), or what stands for them."""
    if place.kind != "line":
        return _KINDS[place.kind]
    if not place.line:
        return clean(f"{place.function} ({place.filename.rpartition('/')[2] or '?'})")
    return place_of(place.filename, place.line, place.function)


def duration(seconds: float | None) -> str:
    """Seconds as ``1.2 ms``, ``3.40 s``, ``2 h 05 min``."""
    if seconds is None:
        return ""
    for limit, unit, factor in ((1e-3, "us", 1e6), (1.0, "ms", 1e3), (120.0, "s", 1.0)):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}" if unit != "s" else f"{seconds:.2f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{seconds / 60:.1f} min"


def render_text(report: SnapshotReport) -> str:
    """The whole report; ends with a line end."""
    source = SourceText(report.taken)
    head = [clean(report.file), *([f"taken {date_of(report.taken)}"] if report.taken else [])]
    parts = [", ".join(head) + "\n"]
    parts += [part for device in report.devices for part in _device_parts(device, source)]
    if report.notes:
        parts.append("".join(f"note: {clean(note)}\n" for note in report.notes))
    return "\n".join(parts)


def _device_parts(device: DeviceReport, source: SourceText) -> Iterator[str]:
    yield _head(device)
    shown: dict[tuple[Held, ...], Moment] = {}
    for moment in device.moments:
        yield _moment_text(device, moment, source, shown.setdefault(moment.holders, moment))
    if device.lines and device.events:
        yield _lines_text(device, source)
        yield from _growth_parts(device, source)
    for moment in device.moments:
        if moment.kind in ("peak", "chosen") or not device.events:
            yield from _call_parts(moment)
            break
    for reserve in _worth_showing(device.reserve):
        yield _reserve_text(reserve)


def _head(device: DeviceReport) -> str:
    notes = [f"note: {clean(note)}" for note in device.notes]
    return "\n".join([f"## {device.name}", "", *summary_of(device), *notes]) + "\n"


def summary_of(device: DeviceReport) -> list[str]:
    """How much was recorded, the highest levels, and the last ones."""
    lines = []
    if device.events:
        over = f" over {duration(device.seconds)}" if device.seconds is not None else ""
        peaks = ", ".join(f"{name} {readable_size(size)}" for name, (size, _) in device.peaks.items())
        lines.append(f"{device.events:,} events{over}; peaks: {peaks}")
    end = ", ".join(f"{name} {readable_size(size)}" for name, size in device.end._asdict().items())
    return [*lines, f"at the end: {end}"]


# ---- moments ----


def when(device: DeviceReport, moment: Moment) -> str:
    """Where in the recording a moment is."""
    if not device.events:
        return ""
    at = f" at {duration(moment.seconds)}" if moment.seconds is not None else ""
    return f"{at} (event {moment.number:,} of {device.events:,})"


def moment_title(device: DeviceReport, moment: Moment) -> str:
    """What a moment is, and its levels."""
    names = {"peak": "Peak", "oom": "Out of memory", "end": "End", "chosen": "Moment"}
    levels = moment.levels
    waiting = levels.active - levels.allocated
    extra = f" ({readable_size(waiting)} of it waits for other streams)" if waiting else ""
    return (
        f"{names[moment.kind]} of {device.name}{when(device, moment)}: active {readable_size(levels.active)}{extra}, "
        f"reserved {readable_size(levels.reserved)}"
    )


def _moment_text(device: DeviceReport, moment: Moment, source: SourceText, first: Moment) -> str:
    """A moment and its holders, unless those were shown of the moment ``first``."""
    again = first is not moment and bool(moment.holders)
    same = f". Held as in event {first.number:,}" if again else ". Held by:" if moment.holders else ""
    lines = [moment_title(device, moment) + (same if moment.kind != "oom" else "")]
    if moment.kind == "oom":
        lines += [f"  {line}" for line in failure_lines(device, moment, source)]
        lines += [f"  held as in event {first.number:,}" if again else "  held then by:"] if moment.holders else []
    if not again:
        lines += [f"  {row}" for row in _rows(moment.holders, moment.levels.active, HOLDERS, source)]
    return "\n".join(lines) + "\n"


def failure_lines(device: DeviceReport, moment: Moment, source: SourceText) -> list[str]:
    """What was asked for where, and what would have made it fit."""
    at = moment.at or Place("no stack")
    code = source.shown(at)
    lines = [f"asked for {readable_size(moment.asked)} at {name_of(at)}{f': {code}' if code else ''}"]
    lines.append(f"{readable_size(moment.device_free)} of the device were free")
    return lines + what_would_fit(_as_failure(device, moment))


def _as_failure(device: DeviceReport, moment: Moment) -> OutOfMemory:
    """The line profiler's record of a failed allocation has the same figures."""
    holders = tuple(ProfilerHolder("line", held.bytes) for held in moment.holders if held.place.kind == "line")
    levels = moment.levels
    return OutOfMemory(
        device.name,
        moment.asked,
        levels.allocated,
        levels.active,
        levels.reserved,
        moment.device_free,
        None,
        ProfilerHolder(ELSEWHERE, 0),
        holders,
    )


def _rows(holders: Sequence[Held], total: int, most: int, source: SourceText | None) -> Iterator[str]:
    shown, rest = list(holders[:most]), holders[most:]
    if len(rest) == 1:
        shown, rest = list(holders), ()
    rows = [(h.bytes, h.blocks, name_of(h.place), _short(source.shown(h.place)) if source else "") for h in shown]
    if rest:
        rows.append((sum(h.bytes for h in rest), sum(h.blocks for h in rest), f"{len(rest)} more", ""))
    width = max((len(readable_size(size)) for size, *_ in rows), default=0)
    counts = max((len(f"{blocks:,}") for _, blocks, *_ in rows), default=0)
    names = max((len(name) for *_, name, code in rows if code), default=0)
    for size, blocks, name, code in rows:
        share = f"{100 * size / total:5.1f}%" if total else ""
        unit = "block " if blocks == 1 else "blocks"
        yield f"{readable_size(size):>{width}} {share}  {blocks:>{counts},} {unit}  {name:{names}}  {code}".rstrip()


def _short(code: str) -> str:
    return code if len(code) <= _LONGEST_CODE else code[: _LONGEST_CODE - 3] + "..."


# ---- lines ----


def _lines_text(device: DeviceReport, source: SourceText) -> str:
    shown = device.lines[:LINES]
    sizes = ("peak", "live", "allocated")
    columns = [right_column([name], 1, [readable_size(getattr(line, name)) for line in shown]) for name in sizes]
    columns.append(right_column(["times"], 1, [f"{line.times:,}" for line in shown]))
    columns.append(right_column(["median life"], 1, [_life(device, line) for line in shown]))
    names = ["line", *(name_of(line.place) for line in shown)]
    width = max(map(len, names))
    code = ["code", *(_short(source.shown(line.place)) for line in shown)]
    rows = [
        f"  {' '.join(cells)}  {name:{width}}  {text}".rstrip() for *cells, name, text in zip(*columns, names, code)
    ]
    if len(device.lines) > len(shown):
        rows.append(f"  {len(device.lines) - len(shown):,} more lines")
    return "\n".join(["By line, over the recording (live: still there at its end)", *rows]) + "\n"


def _life(device: DeviceReport, line: LineFigures) -> str:
    if line.median_life is None:
        return ""
    return duration(line.median_life) if device.seconds is not None else f"{line.median_life:,.0f} events"


def _growth_parts(device: DeviceReport, source: SourceText) -> Iterator[str]:
    growing = [line for line in device.lines if line.growth]
    if not growing:
        return
    growing.sort(key=lambda line: -line.growth.bytes if line.growth else 0)
    rows = ["Lines that keep more and more, to the end of the recording"]
    for line in growing[:HOLDERS]:
        growth = line.growth
        assert growth is not None
        rate = f", {readable_size(round(growth.a_second))} a second" if growth.a_second else ""
        code = _short(source.shown(line.place))
        rows.append(
            f"  {readable_size(growth.bytes)} more ({readable_size(round(growth.each_time))} each time{rate})  "
            f"{name_of(line.place)}  {code}".rstrip()
        )
    yield "\n".join(rows) + "\n"


# ---- functions and calls ----


def _call_parts(moment: Moment) -> Iterator[str]:
    total = moment.levels.active
    named = [held for held in moment.functions if held.place.kind == "line"]
    if not named:
        return
    yield (
        "\n".join(
            [
                "By function, with what it has called",
                *(f"  {r}" for r in _rows(named[:FUNCTIONS], total, FUNCTIONS, None)),
            ]
        )
        + "\n"
    )
    yield "\n".join(["By call", *(f"  {row}" for row in _tree_rows(moment.tree, total, 0))]) + "\n"


def _tree_rows(calls: Iterable[Call], total: int, depth: int) -> Iterator[str]:
    for call in calls:
        if total and call.bytes >= total * _LEAST_BRANCH and depth < _DEEPEST:
            share = f"{100 * call.bytes / total:5.1f}%"
            yield f"{readable_size(call.bytes):>9} {share}  {'  ' * depth}{name_of(call.place)}"
            yield from _tree_rows(call.calls, total, depth + 1)


# ---- reserved and not allocated ----


def _worth_showing(reserves: Sequence[Reserve]) -> list[Reserve]:
    """At the last failure, or else at the end: then it matters."""
    failures = [reserve for reserve in reserves if reserve.kind == "oom"]
    return failures[-1:] or [r for r in reserves if r.kind == "end"][-1:] or list(reserves[-1:])


def reserve_title(reserve: Reserve) -> str:
    """How much is reserved and not active, and when."""
    gap = reserve.reserved - reserve.active
    then = {"oom": "when memory ran out", "end": "at the end"}.get(reserve.kind, f"at event {reserve.number:,}")
    return f"Reserved and not active {then}: {readable_size(gap)} of {readable_size(reserve.reserved)}"


def reserve_lines(reserve: Reserve) -> list[str]:
    """Where it is, and what would give it back."""
    lines = [_pool_line(pool) for pool in reserve.pools]
    if reserve.expandable is not None and reserve.expandable < reserve.reserved:
        lines.append(
            f"expandable segments would have reserved {readable_size(reserve.expandable)} by then: "
            f"{readable_size(reserve.reserved - reserve.expandable)} less "
            "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)"
        )
    for pinned in reserve.pinned:
        by = ", ".join(name_of(held.place) for held in pinned.holders[:2]) + (
            ", ..." if len(pinned.holders) > 2 else ""
        )
        lines.append(f"a segment of {readable_size(pinned.size)} is kept by {readable_size(pinned.active)} of {by}")
    return lines


def _pool_line(pool: Pool) -> str:
    segments = "1 segment" if pool.segments == 1 else f"{pool.segments:,} segments"
    empty = f", {readable_size(pool.empty_bytes)} in empty segments" if pool.empty_bytes else ""
    return (
        f"{readable_size(pool.free)} free of {readable_size(pool.reserved)} in {segments}, {pool.pool} pool, "
        f"stream {pool.stream}; largest free piece {readable_size(pool.largest_free)}{empty}"
    )


def _reserve_text(reserve: Reserve) -> str:
    return "\n".join([reserve_title(reserve), *(f"  {line}" for line in reserve_lines(reserve))]) + "\n"
