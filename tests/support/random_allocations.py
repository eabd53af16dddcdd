"""Random programs on the simulated GPU, each with its snapshot and what PyTorch's own counters say at the end of it.

Run as a script: PYTORCH_CUDA_ALLOC_CONF is read once a process. Usage: random_allocations.py SEED COUNT [SETTINGS].
Prints one line of JSON: what differed, and of programs that never empty the cache what was reserved at the end, and
what
the replay says that expandable segments would have reserved.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import sys
from array import array
from typing import Any

from pytorch_memlab_c import _native, simulate

KINDS = ("allocated", "active", "reserved")


class Program:
    """Tensors made and dropped at random, on several streams, with the cache emptied now and then."""

    def __init__(self, seed: int) -> None:
        import torch

        self.torch = torch
        self.random = random.Random(seed)
        self.tensors: list[Any] = []
        self.streams = [torch.cuda.Stream() for _ in range(2)]
        self.empties = self.random.random() < 0.5

    def run(self, steps: int) -> None:
        for _ in range(steps):
            action = self.random.random()
            if action < 0.55 or not self.tensors:
                self.allocate()
            elif action < 0.95:
                self.tensors.pop(self.random.randrange(len(self.tensors)))
            elif action < 0.98:
                self.random.choice(self.tensors).record_stream(self.random.choice(self.streams))
            elif self.empties:
                self.torch.cuda.empty_cache()

    def allocate(self) -> None:
        size = int(2 ** self.random.uniform(3, 26))
        stream = self.random.choice([None, None, None, *self.streams])
        with self.torch.cuda.stream(stream):
            self.tensors.append(self.torch.empty(size, dtype=self.torch.uint8, device="cuda"))


def recorded(seed: int, before: int, steps: int, **options: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """A snapshot and PyTorch's counters of a program; of it, `before` steps are not recorded."""
    import torch

    torch.cuda.memory._record_memory_history(None)
    torch.cuda.empty_cache()
    program = Program(seed)
    program.run(before)
    torch.cuda.memory._record_memory_history(stacks="python", **options)
    torch.cuda.reset_peak_memory_stats()
    program.run(steps)
    snapshot = torch.cuda.memory._snapshot()
    stats = torch.cuda.memory_stats()
    program.tensors.clear()
    figures = {f"{kind}_{which}": stats[f"{kind}_bytes.all.{which}"] for kind in KINDS for which in ("current", "peak")}
    return snapshot, figures


def replayed(snapshot: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """The same figures by the replay, and what the replay says of itself."""
    data = _native.SnapshotData(io.BytesIO(pickle.dumps(snapshot, protocol=random.choice([2, 3, 4, 5]))).readinto)
    trace = data.devices().index(0)
    peaks = data.peaks(trace)
    figures = {f"{kind}_peak": peaks[i][i] for i, kind in enumerate(KINDS)}
    figures |= {f"{kind}_current": peaks[3][i] for i, kind in enumerate(KINDS)}
    _, _, count, lost, guessed, unequal = data.replay(trace)
    expandable = array("Q", data.expandable(trace, array("I", [count])))[0]
    return figures, {"lost": lost, "guessed": guessed, "unequal": unequal, "expandable": expandable}


def differences(seed: int, found: list[str], reserved: dict[int, list[int]]) -> None:
    """What differs in one program: recorded from its start, or from its middle."""
    before = 0 if seed % 2 else 150
    snapshot, wanted = recorded(seed, before, 400)
    got, state = replayed(snapshot)
    found += [
        f"seed {seed}: {name} {got[name]} instead of {wanted[name]}" for name in wanted if got[name] != wanted[name]
    ]
    if state["lost"] or state["unequal"] or (not before and state["guessed"]):
        found.append(f"seed {seed}: {state}")
    if not before and not Program(seed).empties:
        reserved[seed] = [wanted["reserved_current"], state["expandable"]]


def main(first: int, count: int) -> None:
    simulate.enable("h100-80gb")
    found: list[str] = []
    reserved: dict[int, list[int]] = {}
    for seed in range(first, first + count):
        differences(seed, found, reserved)
    print(json.dumps({"differences": found, "reserved": reserved}))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = sys.argv[3]
    main(int(sys.argv[1]), int(sys.argv[2]))
