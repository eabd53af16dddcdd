"""The engine in C: allocator events, the trace hook, and line counters.

A slot is a device's number in the engine: 0 is the CPU, 1 + i is `cuda:i`. All sizes are in bytes.
"""

from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from typing_extensions import Self

MAX_DEVICES: int

class GrowthStretch(NamedTuple):
    """Samples of what a line held that followed each other.

    `held_bytes`: the lowest as one of these runs began; `old_bytes`: the lowest of what its last run had not made.
    """

    samples: int
    runs: int
    held_bytes: int
    old_bytes: int

class LineGrowth(NamedTuple):
    """What a line held on one device over its runs, without the first that took memory.

    `end_bytes`: `live_bytes` with what was freed only because functions ended.
    """

    live_bytes: int
    end_bytes: int
    runs: list[GrowthStretch]
    calls: list[GrowthStretch]

class LineStats(NamedTuple):
    """A line's figures on one device."""

    runs: int
    active_peak_bytes: int
    allocated_peak_bytes: int
    reserved_peak_bytes: int
    active_current_bytes: int
    allocated_current_bytes: int
    reserved_current_bytes: int
    net_first_bytes: int
    net_sum_bytes: int
    net_max_bytes: int
    net_last_bytes: int
    gross_bytes: int
    allocations: int
    column_values: tuple[int, ...] | None
    growth: LineGrowth | None
    net_later_max_bytes: int | None

class LineCounts(NamedTuple):
    """What was counted for a line; slot -1: by the device that was the target."""

    line: int
    hits: int
    charged_slots: tuple[int, ...]
    stats_by_slot: dict[int, LineStats]

class CodeCounts(NamedTuple):
    """What was counted for a code object."""

    code: CodeType
    calls: int
    lines: list[LineCounts]

class SavedLine(NamedTuple):
    """What autograd kept of a line on one device."""

    line: int
    slot: int
    activation_bytes: int
    run_max_bytes: int
    total_bytes: int
    parameter_bytes: int
    input_bytes: int
    backward_bytes: int
    hook_bytes: int

class SavedCode(NamedTuple):
    """What autograd kept of a code object's lines."""

    code: CodeType
    lines: list[SavedLine]

class LineHolder(NamedTuple):
    """Bytes that a line holds. `kind`: 0 by the line itself, 1 in backward, 2 autograd with several lines."""

    code_id: int
    line: int
    kind: int
    bytes: int

class DevicePeak(NamedTuple):
    """Who holds a device's peak."""

    slot: int
    peak_bytes: int
    at: LineHolder
    holders: list[LineHolder]
    events_per_point: int
    series_bytes: list[int]

class FailedAllocation(NamedTuple):
    """An allocation that failed, by its number in the process; -1: not known."""

    number: int
    slot: int
    asked_bytes: int
    allocated_bytes: int
    active_bytes: int
    reserved_bytes: int
    unused_bytes: int
    total_bytes: int
    at: LineHolder
    holders: list[LineHolder]

class FailedAllocations(NamedTuple):
    """Allocations that failed: how many, and the first ones in full."""

    number: int
    kept: list[FailedAllocation]

class WindowFigures(NamedTuple):
    """A device's levels at a window's start, peak and end."""

    start_active_bytes: int
    start_allocated_bytes: int
    start_reserved_bytes: int
    peak_active_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    end_active_bytes: int
    end_allocated_bytes: int
    end_reserved_bytes: int

class DeviceLevels(NamedTuple):
    """What a device holds now, and what was allocated on it so far."""

    active_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    gross_bytes: int
    allocations: int

class StorageSums(NamedTuple):
    """Bytes of many storages."""

    counted_bytes: int
    block_bytes: int
    without_block_bytes: int

class Chains(NamedTuple):
    """The objects that hold others, as a tree.

    `objects`: each behind what holds it. `parents`: the index of that, or -1 - n for a root of group n. `holders`: for
    each target the indices of what holds it, or of itself as a root. `walked`: objects looked at.
    """

    objects: list[Any]
    parents: list[int]
    holders: list[list[int]]
    walked: int

class Hook: ...
class Entry: ...

class Switch:
    enabled: bool
    def _before_enable(self) -> Tracer: ...
    def _after_disable(self) -> None: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class WindowBlock:
    _window: PeakWindow
    def _begin(self) -> None: ...
    def _end(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class Tracer:
    recording: bool
    failed: bool
    interrupted: bool
    unseen: bool
    def __new__(
        cls, columns: tuple[int, ...], sample_runs: int, holders: Holders = ..., saved_group: int = 0
    ) -> Tracer: ...
    def add_code(
        self, code: CodeType, first_line: int, last_line: int, parts: tuple[tuple[int, int, int], ...] = ()
    ) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def clear(self) -> None: ...
    def snapshot(self) -> list[CodeCounts]: ...
    def saved(self) -> list[SavedCode]: ...

class Holders:
    failed: bool
    def __new__(cls) -> Holders: ...
    def snapshot(self) -> list[DevicePeak]: ...
    def failures(self) -> FailedAllocations: ...

class PeakWindow:
    is_open: bool
    def __new__(cls) -> PeakWindow: ...
    def open(self) -> None: ...
    def close(self) -> None: ...
    def figures(self, slot: int) -> WindowFigures: ...

class Storage:
    counted: int
    block: int
    tensors: list[Any]
    def __new__(cls, key: int, address: int, nbytes: int, bare: Any) -> Storage: ...
    @property
    def key(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def bare(self) -> Any: ...

def enter(entries: list[Any]) -> None: ...
def adopt_thread() -> None: ...
def any_enabled() -> bool: ...
def after_fork_child() -> None: ...
def set_target(slot: int) -> None: ...
def install_events() -> int: ...
def events_displaced() -> bool: ...
def forget_blocks() -> None: ...
def seed_cpu(pointer: int, size: int) -> bool: ...
def seed_device(slot: int, active: int, allocated: int, reserved: int) -> bool: ...
def inject_event(slot: int, size: int, allocated: int = 0, reserved: int = 0, pointer: int = 0) -> None: ...
def engine() -> str: ...
def last_failure() -> int: ...
def inject_failure(slot: int, asked: int, allocated: int, reserved: int, unused: int, total: int) -> None: ...
def levels(slot: int) -> DeviceLevels: ...
def devices_used() -> list[int]: ...
def connect_statistics(
    read: Callable[[int], dict[str, Any]], reset: Callable[[int], None], devices: Callable[[], int]
) -> None: ...
def use_statistics_only(only: bool) -> None: ...
def add_column(path: tuple[str, ...], kind: int) -> int: ...
def sample() -> bool: ...
def kept_peaks(device: int) -> dict[str, Any] | None: ...
def forget_peaks(device: int) -> None: ...
def merge_peaks(into: dict[str, Any], source: dict[str, Any]) -> None: ...
def saved_connect(samples: tuple[tuple[int, int, int, int], ...], tensor_base: type, guard: type) -> bool: ...
def saved_learn_wrapper(wrapper: int, inside: int) -> bool: ...
def saved_follow(follow: bool) -> None: ...
def saved_hooks_are_set() -> bool: ...
def run_child(
    starter: bytes, arguments: tuple[bytes, ...], executable: str, directory: str | bytes | None
) -> tuple[int, int] | tuple[None, None]: ...
def walk_instances(types: type | str | tuple[type | str, ...]) -> list[Any]: ...
def try_each(question: Any, objects: list[Any]) -> list[Any]: ...
def find_answers(objects: list[Any], *questions: Any) -> tuple[list[tuple[Any, Any]], ...]: ...
def sum_answers(question: Any, objects: list[Any]) -> int: ...
def walk_kinds(*types: type | str) -> tuple[list[Any], ...]: ...
def enter_tensors(
    tensors: list[Any], storages: dict[int, Storage], devices: Any, questions: tuple[Any, Any, Any, Any, Any]
) -> tuple[list[Any], list[Any]]: ...
def count_once(storages: list[Storage]) -> None: ...
def set_cpu_blocks(storages: list[Storage]) -> None: ...
def sum_storages(storages: list[Storage]) -> StorageSums: ...
def largest_first(storages: list[Storage], rows: int) -> tuple[list[Storage], list[Any]]: ...
def find_chains(
    targets: list[Any], groups: tuple[list[Any], ...], ours: list[Any], later: list[Any], most: int, limit: int
) -> Chains: ...

class SnapshotColumn:
    def __len__(self) -> int: ...

class SnapshotData:
    other: Any
    timed: bool
    has_segments: bool
    def __new__(cls, readinto: Callable[[memoryview], int]) -> SnapshotData: ...
    def names(self) -> list[str]: ...
    def settings(self) -> list[tuple[int, int, int, int, int]]: ...
    def unknown(self) -> list[str]: ...
    def devices(self) -> list[int]: ...
    def frames(self) -> SnapshotColumn: ...
    def stacks(self) -> SnapshotColumn: ...
    def members(self) -> SnapshotColumn: ...
    def segments(self) -> SnapshotColumn: ...
    def blocks(self) -> SnapshotColumn: ...
    def events(self, trace: int) -> SnapshotColumn: ...
    def replay(self, trace: int) -> tuple[tuple[int, int, int], tuple[int, int, int], int, int, int, int]: ...
    def allocations(self, trace: int) -> SnapshotColumn: ...
    def peaks(self, trace: int) -> list[tuple[int, int, int, int]]: ...
    def stretches(self, trace: int, ends: Any) -> bytes: ...
    def spans(self, trace: int, moment: int) -> bytes: ...
    def figures(self, trace: int, groups: Any, count: int, stretches: int) -> tuple[bytes, bytes]: ...
    def expandable(self, trace: int, moments: Any) -> bytes: ...
