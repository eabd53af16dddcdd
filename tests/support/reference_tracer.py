"""A naive line profiler in plain Python, to compare the engine with: `sys.settrace`,
`torch.cuda.memory_stats_as_nested_dict()` and a
reset of the peaks at every event of a measured frame. It shares no code with the engine."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import torch

METRICS = ("active_bytes", "allocated_bytes", "reserved_bytes")


class Segment:
    def __init__(self, frame: Any, now: list[dict[str, int]]) -> None:
        self.frame = frame
        self.line = frame.f_lineno
        self.start = [levels["allocated_bytes"] for levels in now]
        self.peak = [dict(levels) for levels in now]


class ReferenceTracer:
    """Figures by (code, line, device): hits, the peak of each metric, and the net of every run in order."""

    def __init__(self, *functions: Any, devices: int = 1) -> None:
        self.codes = {function.__code__ for function in functions}
        self.devices = range(devices)
        self.hits: dict[Any, int] = defaultdict(int)
        self.peaks: dict[Any, list[int]] = {}
        self.nets: dict[Any, list[int]] = defaultdict(list)
        self.open: list[Segment] = []

    def __enter__(self) -> ReferenceTracer:
        sys.settrace(self.trace)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(None)

    def trace(self, frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code not in self.codes:
            return None
        if event in ("call", "line", "return"):
            self.boundary(frame, event)
        return self.trace

    def boundary(self, frame: Any, event: str) -> None:
        now = self.fold()
        if event != "call":
            self.close(frame, now)
        if event != "return":
            self.open.append(Segment(frame, now))
        if event == "line":
            self.hits[frame.f_code, frame.f_lineno] += 1

    def fold(self) -> list[dict[str, int]]:
        """Read all devices, give their peaks to every open segment, and reset them."""
        now = []
        for device in self.devices:
            stats = torch.cuda.memory_stats_as_nested_dict(device)
            torch.cuda.reset_peak_memory_stats(device)
            now.append({m: stats[m]["all"]["current"] for m in METRICS})
            for segment in self.open:
                for m in METRICS:
                    segment.peak[device][m] = max(segment.peak[device][m], stats[m]["all"]["peak"])
        return now

    def close(self, frame: Any, now: list[dict[str, int]]) -> None:
        segment = next(s for s in reversed(self.open) if s.frame is frame)
        self.open.remove(segment)
        for device in self.devices:
            key = frame.f_code, segment.line, device
            peak = [segment.peak[device][m] for m in METRICS]
            self.peaks[key] = [max(pair) for pair in zip(peak, self.peaks.get(key, peak))]
            self.nets[key].append(now[device]["allocated_bytes"] - segment.start[device])
