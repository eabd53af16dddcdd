"""An account of who holds a device's peak that shares nothing with the engine: PyTorch's own memory history,
replayed, its
blocks charged to lines by the Python frames that PyTorch recorded with them.

The history tells the bytes that were asked for. How large a block is follows from what is split off it, so the
segments are replayed, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

ELSEWHERE = ("elsewhere", None)
#: PyTorch records no Python frames on autograd's own threads.
BACKWARD = ("backward", None)
SMALL_SEGMENT, LARGEST_REST = 2 << 20, 1 << 20


class Account(NamedTuple):
    """The first highest moment of a device, the bytes of each (function, line) then, and in how many blocks."""

    peak: int
    holders: dict[Any, int]
    blocks: int


class History:
    """PyTorch's memory history from `start` to `stop`, of all devices."""

    def start(self) -> None:
        self.before = torch.cuda.memory._snapshot()["segments"]
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=10**7)

    def stop(self) -> None:
        self.traces = torch.cuda.memory._snapshot()["device_traces"]
        torch.cuda.memory._record_memory_history(enabled=None)

    def account(self, device: int, line_of: Callable[[Any], Any]) -> Account:
        segments = [segment for segment in self.before if segment["device"] == device]
        return _Replay(segments, line_of).run(self.traces[device])


class Lines:
    """Charges a block to the innermost line of the functions that are measured."""

    def __init__(self, functions: Iterable[Any]) -> None:
        self.ranges = [(f.__code__, max(n for _, _, n in f.__code__.co_lines() if n)) for f in functions]

    def of(self, frames: list[dict[str, Any]]) -> Any:
        for frame in frames:
            for code, last in self.ranges:
                if (frame["filename"], frame["name"]) == (code.co_filename, code.co_name):
                    if code.co_firstlineno <= frame["line"] <= last:
                        return code.co_name, frame["line"]
        return ELSEWHERE if frames else BACKWARD


class _Replay:
    def __init__(self, segments: list[dict[str, Any]], line_of: Callable[[Any], Any]) -> None:
        self.line_of = line_of
        self.sizes: dict[int, int] = {}  # every block, by its address
        self.live: dict[int, Any] = {}  # the active ones: their lines
        self.segments: dict[int, int] = {}
        for segment in segments:
            self.segments[segment["address"]] = segment["total_size"]
            for block in segment["blocks"]:
                self.sizes[block["address"]] = block["size"]
                if block["state"] != "inactive":
                    self.live[block["address"]] = ELSEWHERE
        self.value = sum(self.sizes[address] for address in self.live)

    def run(self, entries: list[dict[str, Any]]) -> Account:
        best = self.picture()
        for entry in entries:
            act = getattr(self, entry["action"], None)
            if act is not None:
                act(entry["addr"], entry["size"], entry["frames"])
            if self.value > best.peak:
                best = self.picture()
        return best

    def picture(self) -> Account:
        held: Counter[Any] = Counter()
        for address, line in self.live.items():
            held[line] += self.sizes[address]
        return Account(self.value, dict(held), len(self.live))

    def segment_alloc(self, address: int, size: int, frames: Any) -> None:
        self.segments[address] = self.sizes[address] = size

    def segment_free(self, address: int, size: int, frames: Any) -> None:
        del self.segments[address], self.sizes[address]

    def alloc(self, address: int, size: int, frames: Any) -> None:
        whole, needed = self.sizes[address], max(-(-size // 512) * 512, 512)
        small = self.segment_of(address)[1] == SMALL_SEGMENT
        if whole - needed >= 512 if small else whole - needed > LARGEST_REST:
            self.sizes[address] = needed
            self.sizes[address + needed] = whole - needed
        self.live[address] = self.line_of(frames)
        self.value += self.sizes[address]

    def free_completed(self, address: int, size: int, frames: Any) -> None:
        del self.live[address]
        self.value -= self.sizes[address]
        start, length = self.segment_of(address)
        after = address + self.sizes[address]
        if after < start + length and after not in self.live:
            self.sizes[address] += self.sizes.pop(after)
        if address > start:
            before = max(other for other in self.sizes if other < address)
            if before not in self.live:
                self.sizes[before] += self.sizes.pop(address)

    def segment_of(self, address: int) -> tuple[int, int]:
        return next((start, size) for start, size in self.segments.items() if start <= address < start + size)


def told(peak: Any) -> dict[Any, int]:
    """The engine's holders of one device in the same form."""
    held: Counter[Any] = Counter()
    for holder in peak.holders:
        if holder.kind == "backward":
            held[BACKWARD] += holder.bytes
        elif holder.kind == "line":
            held[holder.function.rpartition(".")[2], holder.line] += holder.bytes
        else:
            held[ELSEWHERE] += holder.bytes
    return dict(held)
