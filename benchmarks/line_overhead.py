"""What a profiled line costs: this project beside pytorch_memlab, in one run, on the simulated GPU.

Usage: python benchmarks/line_overhead.py [--quick]
Needs the CUDA build of PyTorch and, for the peer's column, `pip install pytorch_memlab==0.3.2`.
Figures are processor time, the best of interleaved rounds: what other programs take from the machine is left out as far
as possible. Absolute times are this machine's; compare the ratios.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytorch_memlab_c
from pytorch_memlab_c import decorators, simulate

simulate.enable("a100-80gb")

import torch  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import train_transformer  # noqa: E402


def nothing(n: int) -> None:
    i = 0
    while i < n:
        i += 1


def one_allocation(n: int) -> None:
    for _ in range(n):
        x = torch.empty(100, device="cuda")  # noqa: F841


def unprofiled(n: int) -> int:
    total = 0
    for i in range(n):
        total += identity(i)
    return total


def identity(x: int) -> int:
    return x


def seconds(run: Callable[[int], Any], n: int) -> float:
    """Processor time of one run."""
    start = time.process_time()
    run(n)
    return time.process_time() - start


def peer_profiled(function: Callable[[int], Any]) -> Callable[[int], Any] | None:
    try:
        from pytorch_memlab import LineProfiler
    except ImportError:
        return None

    def run(n: int) -> None:
        with LineProfiler(function):
            function(n)

    return run


def per_line(function: Callable[[int], Any], run: Callable[[int], Any], n: int, lines: int, rounds: int) -> float:
    """Extra nanoseconds a line: the best profiled round against the best plain one."""
    times = [(seconds(function, n), seconds(run, n)) for _ in range(rounds)]
    plain, profiled = (min(column) for column in zip(*times))
    return (profiled - plain) / (n * lines) * 1e9


def compare_lines(name: str, function: Callable[[int], Any], n: int, rounds: int) -> None:
    lines = 2  # the loop's line and the body's
    ours = per_line(function, pytorch_memlab_c.profile(function), n, lines, rounds)
    peer = peer_profiled(function)
    if peer is None:
        print(f"{name:42} {ours:9.0f} ns a line   (pytorch_memlab is not installed)")
        return
    theirs = per_line(function, peer, max(n // 100, 200), lines, 3)
    print(f"{name:42} {ours:9.0f} ns a line   peer {theirs:9.0f} ns   {theirs / ours:7.0f} times cheaper")


def compare_allocation(n: int, rounds: int) -> None:
    """The loop's own line allocates nothing: its cost is taken off, so that the allocating line stands alone."""
    name, function = "a line with one CUDA allocation", one_allocation

    def both(run: Callable[[int], Any], idle: Callable[[int], Any], n: int, rounds: int) -> float:
        return 2 * per_line(function, run, n, 2, rounds) - per_line(nothing, idle, n, 2, rounds)

    ours = both(pytorch_memlab_c.profile(function), pytorch_memlab_c.profile(nothing), n, rounds)
    peer, idle = peer_profiled(function), peer_profiled(nothing)
    if peer is None or idle is None:
        print(f"{name:42} {ours:9.0f} ns a line   (pytorch_memlab is not installed)")
        return
    theirs = both(peer, idle, max(n // 100, 200), 3)
    print(f"{name:42} {ours:9.0f} ns a line   peer {theirs:9.0f} ns   {theirs / ours:7.0f} times cheaper")


def compare_elsewhere(n: int, rounds: int) -> None:
    """A function that is not profiled, before and after the decorators have come into use."""
    before = min(seconds(unprofiled, n) for _ in range(rounds))
    decorated = [pytorch_memlab_c.profile(lambda: None) for _ in range(100)]
    decorated[0]()
    after = min(seconds(unprofiled, n) for _ in range(rounds))
    name = "a call elsewhere, decorators in place"
    print(
        f"{name:42} {after / n * 1e9:9.1f} ns a call   before {before / n * 1e9:9.1f} ns   ratio {after / before:.3f}"
    )


class Step:
    """The demo's training step, with its functions decorated or as they were before."""

    owners = (train_transformer.Block, train_transformer.Transformer)
    decorated = tuple(owner.forward for owner in owners)

    def __init__(self, device: str, decorated: bool) -> None:
        self.parts = train_transformer.build(device)
        self.decorated_now = decorated

    def times(self, warm_up: int = 4, steps: int = 8) -> list[float]:
        step = train_transformer.train_step
        for owner, forward in zip(self.owners, self.decorated):
            owner.forward = forward if self.decorated_now else forward.__wrapped__
        run = step if self.decorated_now else step.__wrapped__
        for _ in range(warm_up):  # Python's own caches, after the change
            run(*self.parts)
        return [seconds(lambda n: run(*self.parts), 1) for _ in range(steps)]


def compare_step(rounds: int) -> None:
    """The demo's training step under @profile, and plain, a few steps each in turn."""
    for device in ("cpu", "cuda"):
        steps = [Step(device, decorated) for decorated in (False, True)]
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for step, taken in zip(steps, times):
                taken += step.times()
        plain, profiled = (statistics.median(taken) for taken in times)
        name = f"the demo's training step, {device}"
        print(f"{name:42} {profiled / plain:9.3f} times its plain time ({plain * 1e3:.2f} ms)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else 9
    gc.collect()
    gc.disable()  # its runs would fall on one side or the other by chance
    kept = decorators._profilers.copy()
    decorators._profilers.clear()  # the demo's tables are not wanted here
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, simulated GPU: {torch.cuda.get_device_name()}")
    compare_elsewhere(200_000, rounds)
    compare_lines("a line that allocates nothing", nothing, 200_000, rounds)
    compare_allocation(40_000, rounds)
    compare_step(rounds * 4)
    kept += decorators._profilers
    decorators._profilers.clear()


if __name__ == "__main__":
    main()
