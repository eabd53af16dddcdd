"""Legal but odd snapshots made at random, beside a plain model: blocks of all sizes in shared segments, addresses that
come again, the same ones on two devices, frees that are completed late, failures between."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from typing import Any

import made_up_traces as made_up
import pytest
from made_up_traces import M

from pytorch_memlab_c.snapshot import Snapshot

LINES = ["/job/a.py:1 f", "/job/a.py:2 f", "/job/ü.py:1 größe", "/job/b.py:900000 <lambda>", "/job/b.py:3 g"]
SEGMENT = 64 * M


class Model:
    """One device: events, and by line what a reader must find."""

    def __init__(self, device: int, seed: int, keeps: bool) -> None:
        self.trace = made_up.Trace(device)
        self.random = random.Random(seed)
        self.base = made_up.BASE + (0 if self.random.random() < 0.5 else (1 << 63))
        self.places = self.random.sample(LINES, self.random.randint(1, len(LINES)))
        self.live: dict[int, tuple[int, str | None, int]] = {}  # address: size, line, time
        self.waiting: list[int] = []
        self.segments: dict[int, int] = {}  # address: size
        self.active = self.peak = 0
        self.allocated: dict[str | None, int] = defaultdict(int)
        self.times: dict[str | None, int] = defaultdict(int)
        self.now: dict[str | None, int] = defaultdict(int)
        self.most: dict[str | None, int] = defaultdict(int)
        self.lives: dict[str | None, list[int]] = defaultdict(list)
        self.keeps = keeps

    def run(self, steps: int) -> None:
        for _ in range(steps):
            action = self.random.random()
            if action < 0.5 or not self.live:
                self.allocate()
            elif action < 0.8:
                self.request()
            elif action < 0.95:
                self.complete()
            elif action < 0.98:
                self.trace.fail(1 << 40, 5, LINES[0])
            else:
                self.trace.event("snapshot", 0, 0)

    def allocate(self) -> None:
        size = self.random.choice([512, 1024, 4096, M, 3 * M, 10 * M + 512])
        address = self.gap(size)
        if address is None:
            return
        place = self.random.choice([None, *self.places])
        stack = made_up.frames(place, "/job/main.py:7 main") if place else []
        if place and self.random.random() < 0.3:
            stack = made_up.frames("/x/site-packages/torch/nn/linear.py:5 forward") + stack
        self.trace.event("alloc", address, size, stack)
        self.live[address] = (size, place, self.trace.time)
        self.active += size
        self.peak = max(self.peak, self.active)
        self.allocated[place] += size
        self.times[place] += 1
        self.now[place] += size
        self.most[place] = max(self.most[place], self.now[place])

    def gap(self, size: int) -> int | None:
        """Where a free piece begins, in a segment that there is or a new one, by PyTorch's rules.

        Blocks of up to 1 MiB are in segments of 2 MiB, all others in larger ones, where what is left of a piece is
        split off if it is more than 1 MiB.
        """
        large = size > M
        length, rest = (SEGMENT, M) if large else (2 * M, 0)
        segment = self.base + self.random.randrange(4) * SEGMENT + (0 if large else 8 * SEGMENT)
        inside = sorted((a, a + v[0]) for a, v in self.live.items() if segment <= a < segment + length)
        edges = zip([segment, *(end for _, end in inside)], [*(start for start, _ in inside), segment + length])
        starts = [start for start, end in edges if end - start == size or end - start > size + rest]
        if not starts:
            return None
        if segment not in self.segments:
            self.segments[segment] = length
            self.trace.event("segment_alloc", segment, length)
        return self.random.choice(starts)

    def request(self) -> None:
        choices = [address for address in self.live if address not in self.waiting]
        if not choices or (self.keeps and self.random.random() < 0.5):
            return
        address = self.random.choice(choices)
        self.trace.event("free_requested", address, self.live[address][0])
        self.waiting.append(address)
        if self.random.random() < 0.6:
            self.complete(address)

    def complete(self, address: int | None = None) -> None:
        if not self.waiting:
            return
        address = self.random.choice(self.waiting) if address is None else address
        self.waiting.remove(address)
        size, place, since = self.live.pop(address)
        self.trace.event("free_completed", address, size)
        self.active -= size
        self.now[place] -= size
        self.lives[place].append(self.trace.time - since)

    def state(self) -> list[dict[str, Any]]:
        """The segments at the end, with their blocks and gaps."""
        return [self.segment(segment) for segment in sorted(self.segments)]

    def segment(self, segment: int) -> dict[str, Any]:
        size = self.segments[segment]
        inside = sorted((a, v) for a, v in self.live.items() if segment <= a < segment + size)
        blocks, at = [], segment
        for address, (length, place, _) in inside:
            blocks += [block(at, address - at, "inactive")] if address > at else []
            state = "active_awaiting_free" if address in self.waiting else "active_allocated"
            stack = made_up.frames(place, "/job/main.py:7 main") if place else []
            blocks.append({**block(address, length, state), "frames": stack})
            at = address + length
        blocks += [block(at, segment + size - at, "inactive")] if at < segment + size else []
        return {
            "device": self.trace.device,
            "address": segment,
            "total_size": size,
            "stream": 0,
            "segment_type": "large" if size > 2 * M else "small",
            "blocks": blocks,
        }


def block(address: int, size: int, state: str) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": []}


def label(row: dict[str, Any]) -> str | None:
    return None if row["kind"] == "no stack" else f"{row['file']}:{int(row['line'])} {row['function']}"


@pytest.mark.parametrize("seed", range(100))
def test_every_figure_is_that_of_a_plain_model(seed: int) -> None:
    models = [Model(device, 1000 * seed + device, keeps=seed % 3 == 0) for device in range(1 + seed % 2)]
    for model in models:
        model.run(30 + 7 * seed)
    snapshot = Snapshot.from_object(
        {
            "segments": [segment for model in models for segment in model.state()],
            "device_traces": [model.trace.events for model in models],
        }
    )
    rows = snapshot.to_dataframe().astype(object).to_dict("records")
    for model, device in zip(models, snapshot.devices):
        assert device.peaks["active"].levels.active == model.peak
        assert device.peaks["end"].levels.active == model.active == sum(v[0] for v in model.live.values())
        assert device.peaks["end"].levels.reserved == sum(model.segments.values())
        found = {label(row): row for row in rows if row["device"] == device.name}
        assert found.keys() == model.times.keys()
        for place, row in found.items():
            kept = [v[0] for v in model.live.values() if v[1] == place]
            assert (row["allocated"], row["times"]) == (model.allocated[place], model.times[place])
            assert (row["peak"], row["live"], row["live_blocks"]) == (model.most[place], sum(kept), len(kept))
            if model.lives[place]:
                lives = sorted(model.lives[place])
                assert row["median_life"] * 1e6 == pytest.approx(
                    statistics.median(lives), abs=lives[len(lives) // 2] - lives[(len(lives) - 1) // 2] + 1
                )
        assert sum(row["at_peak"] for row in found.values()) == model.peak
