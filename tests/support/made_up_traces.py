"""Memory snapshots as PyTorch makes them, with made-up events: dicts for `pickle.dumps`. No torch."""

from __future__ import annotations

from typing import Any

K, M = 1 << 10, 1 << 20
#: Addresses of the first segments.
BASE = 0x7F0000000000


def frames(*places: str) -> list[dict[str, Any]]:
    """A stack, the innermost frame first, from texts as ``file.py:12 name``."""
    found = []
    for place in places:
        where, _, name = place.partition(" ")
        filename, _, line = where.rpartition(":")
        found.append({"name": name, "filename": filename, "line": int(line)})
    return found


class Trace:
    """One device that allocates each block in a segment of its own: sizes are multiples of 2 MiB."""

    def __init__(self, device: int = 0, start: int = 1_700_000_000_000_000) -> None:
        self.device = device
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, dict[str, Any]] = {}
        self.segments: dict[int, int] = {}
        self.time = start
        self._next = BASE + (device << 40)

    def event(self, action: str, address: int, size: int, stack: Any = (), **more: Any) -> None:
        self.time += 1000
        self.events.append(
            {
                "action": action,
                "device_free" if action == "oom" else "addr": address,
                "size": size,
                "stream": 0,
                "time_us": self.time,
                "pool_id": (0, 0),
                "frames": list(stack),
                **more,
            }
        )

    def allocate(self, size: int, *places: str) -> int:
        address, self._next = self._next, self._next + size
        stack = frames(*places)
        self.event("segment_alloc", address, size, stack)
        self.event("alloc", address, size, stack)
        self.segments[address] = size
        self.live[address] = {"size": size, "frames": stack}
        return address

    def free(self, address: int) -> None:
        size = self.live.pop(address)["size"]
        self.event("free_requested", address, size)
        self.event("free_completed", address, size)

    def fail(self, size: int, free: int, *places: str) -> None:
        self.event("oom", free, size, frames(*places))

    def segment(self, address: int, size: int) -> dict[str, Any]:
        block = self.live.get(address)
        return {
            "device": self.device,
            "address": address,
            "total_size": size,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [
                {
                    "address": address,
                    "size": size,
                    "requested_size": size,
                    "state": "active_allocated" if block else "inactive",
                    "frames": block["frames"] if block else [],
                }
            ],
        }


def snapshot(*traces: Trace, drop: int = 0, **more: Any) -> dict[str, Any]:
    """What `torch.cuda.memory._snapshot()` would return; ``drop``: events that the ring has lost."""
    return {
        "segments": [trace.segment(a, s) for trace in traces for a, s in trace.segments.items()],
        "device_traces": [trace.events[drop:] for trace in traces],
        "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
        **more,
    }


def leak(steps: int = 64) -> Trace:
    """A program with weights, a step whose activations go, and a line that keeps 2 MiB each step; it then fails."""
    trace = Trace()
    trace.allocate(32 * M, "/site-packages/torch/nn/linear.py:5 init", "/job/model.py:10 build", "/job/train.py:3 main")
    for _ in range(steps):
        activation = trace.allocate(8 * M, "/job/model.py:20 forward", "/job/train.py:30 main")
        trace.allocate(2 * M, "/site-packages/torch/x.py:1 clone", "/job/log.py:7 remember", "/job/train.py:31 main")
        gradient = trace.allocate(4 * M)
        trace.free(activation)
        trace.free(gradient)
    trace.fail(1 << 30, 100 * M, "/job/model.py:20 forward", "/job/train.py:30 main")
    return trace
