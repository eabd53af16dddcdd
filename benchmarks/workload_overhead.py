"""What measuring the peak of a workload costs: this project beside torchscan, in one run, on CPU tensors.

Usage: python benchmarks/workload_overhead.py [--rounds N] [--steps N]
Needs PyTorch and, for the peer's figures, `pip install --no-deps torchscan==0.2.0`.
The workload: the first 50 training steps of an MLP (8 linear layers of 256, batch 64, Adam). Each time is the best of
five in a fresh process, so that nothing of a measurement is left in the plain one; the median of alternating rounds.
Figures are processor time of one thread: what other programs take from the machine is left out as far as possible.
Absolute times are this machine's; compare the ratios. What this project does once in a process, at its first
measurement (finding the tensors that live already), is shown apart.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

WAYS = ("plain", "pytorch_memlab_c", "torchscan")


def workload(steps: int) -> Callable[[], None]:
    """Training of a new model for a number of steps."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(64, 256)

    def train() -> None:
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()

    return train


def measurement(way: str) -> Callable[[Callable[[], None]], Any]:
    if way == "pytorch_memlab_c":
        from pytorch_memlab_c import measure_peak_memory as ours

        return lambda workload: ours(workload, device="cpu")
    if way == "torchscan":
        from torchscan.process import measure_peak_memory as theirs

        return lambda workload: theirs(workload, device="cpu")
    return lambda workload: workload()


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time, and what `run` returns. A full garbage collection would take a tenth of it, at random times."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    result = run()
    taken = time.process_time() - start
    gc.enable()
    return taken, result


def measure_here(way: str, steps: int) -> None:
    """Time measurements in this process and print the best; set-up and a warm-up are not in it."""
    measure = measurement(way)
    workload(10)()
    once = seconds(lambda: measure(lambda: None))[0] if way == "pytorch_memlab_c" else 0.0
    repeats = 1 if way == "torchscan" else 5  # its cost is so high that one tells
    runs = [seconds(lambda train=train: measure(train)) for train in (workload(steps) for _ in range(repeats))]
    taken, figures = min(runs, key=lambda run: run[0])
    print(json.dumps({"seconds": taken, "once": once, "delta_bytes": figures and figures["delta_bytes"]}))


def measure_apart(way: str, steps: int) -> dict[str, Any]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--way", way, "--steps", str(steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(rounds: int, steps: int) -> None:
    ways = [way for way in WAYS if way == "plain" or importlib.util.find_spec(way)]
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways:
            if way != "torchscan" or number < 2:
                runs[way].append(measure_apart(way, steps))
    print(f"{steps} training steps, {rounds} rounds; plain: {median(runs['plain']):.3f} s")
    for way in ways[1:]:
        show(way, runs[way], runs["plain"])
    if "torchscan" not in ways:
        print("torchscan is not installed: no peer's figures")


def median(runs: list[dict[str, Any]]) -> float:
    """Of the rounds: the very best is that of a lucky moment on a machine that others use too."""
    return statistics.median(run["seconds"] for run in runs)


def show(way: str, runs: list[dict[str, Any]], plain: list[dict[str, Any]]) -> None:
    once = min(run["once"] for run in runs)
    first = f", and once in a process {once * 1e3:.0f} ms" if once else ""
    ratio = f"{median(runs):.3f} s, ratio {median(runs) / median(plain):.3f}{first}"
    print(f"{way + ' measure_peak_memory':36} {ratio}; peak delta {runs[0]['delta_bytes']:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        measure_here(options.way, options.steps)
    else:
        compare(options.rounds, options.steps)


if __name__ == "__main__":
    main()
