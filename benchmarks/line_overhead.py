"""What a profiled line costs: this project beside pytorch_memlab, in one run, on the simulated GPU.

Usage: python benchmarks/line_overhead.py [--quick]
Needs the CUDA build of PyTorch and, for the peer's column, `pip install pytorch_memlab==0.3.2`.
A line's figures are processor time, the median of interleaved rounds; a step's are medians. It takes three minutes.
Absolute times are this machine's; compare the ratios, and leave the machine idle meanwhile.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import gc
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytorch_memlab_c
from pytorch_memlab_c import _native, simulate
from pytorch_memlab_c.line_profiler import decorators

simulate.enable("a100-80gb")

import torch  # noqa: E402

EXAMPLE = Path(__file__).parent.parent / "examples" / "train_transformer.py"


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
    """Extra nanoseconds a line: the median over pairs of a plain round and a profiled one."""
    extra = []
    for turn in range(rounds):
        pair = (function, run) if turn % 2 else (run, function)
        taken = {which: seconds(which, n) for which in pair}
        extra.append(taken[run] - taken[function])
    return statistics.median(extra) / (n * lines) * 1e9


def show_lines(name: str, ours: Callable[[], float], peer: Callable[[], float] | None, turns: int) -> None:
    """Both are measured in turn, so that a slow moment of the machine does not fall on one of them alone."""
    pairs = [(ours(), peer() if peer else 0.0) for _ in range(turns)]
    own = statistics.median(first for first, _ in pairs)
    if peer is None:
        print(f"{name:42} {own:9.0f} ns a line   (pytorch_memlab is not installed)")
        return
    theirs = statistics.median(second for _, second in pairs)
    cheaper = statistics.median(second / first for first, second in pairs)
    print(f"{name:42} {own:9.0f} ns a line   peer {theirs:9.0f} ns   {cheaper:7.0f} times cheaper")


def compare_idle_line(turns: int) -> None:
    profiled, peer = pytorch_memlab_c.profile(nothing), peer_profiled(nothing)
    ours = functools.partial(per_line, nothing, profiled, 20_000, 2, 15)
    theirs = peer and functools.partial(per_line, nothing, peer, 200, 2, 1)
    show_lines("a line that allocates nothing", ours, theirs, turns)


def compare_allocation(turns: int) -> None:
    """The loop's own line allocates nothing: its cost is taken off, so that the allocating line stands alone."""

    def alone(run: Callable[[int], Any], idle: Callable[[int], Any], n: int, rounds: int) -> float:
        return 2 * per_line(one_allocation, run, n, 2, rounds) - per_line(nothing, idle, n, 2, rounds)

    profiled, idle = pytorch_memlab_c.profile(one_allocation), pytorch_memlab_c.profile(nothing)
    peer, peer_idle = peer_profiled(one_allocation), peer_profiled(nothing)
    ours = functools.partial(alone, profiled, idle, 3_000, 30)
    theirs = functools.partial(alone, peer, peer_idle, 200, 1) if peer and peer_idle else None
    show_lines("a line with one CUDA allocation", ours, theirs, turns)


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


def load_example(decorate: Callable[[Any], Any]) -> Any:
    """The demo's module, with `decorate` in the place of `@profile`."""
    spec = importlib.util.spec_from_file_location(f"example_{decorate.__name__}", EXAMPLE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(pytorch_memlab_c, "profile", decorate):
        spec.loader.exec_module(module)
    return module


def identity_decorator(function: Any) -> Any:
    return function


def step_times(examples: list[Any], device: str, steps: int) -> list[list[float]]:
    """Seconds of each step of freshly built models, one step of each in turn."""
    parts = [example.build(device) for example in examples]
    times: list[list[float]] = [[] for _ in examples]
    for step in range(steps + 4):
        for example, part, taken in zip(examples, parts, times):
            start = time.perf_counter()
            example.train_step(*part)
            if step >= 4:  # the first ones fill caches
                taken.append(time.perf_counter() - start)
            _native.devices_used()  # counts what the step's end reported: not in the next one's time
    return times


def step_medians(device: str, steps: int, builds: int) -> list[float]:
    """Seconds a step of three freshly loaded copies of the demo: plain, under @profile, and plain again."""
    examples = [load_example(how) for how in (identity_decorator, pytorch_memlab_c.profile, identity_decorator)]
    times: list[list[float]] = [[], [], []]
    for turn in range(builds):
        order = (0, 1, 2) if turn % 2 else (2, 1, 0)
        for i, taken in zip(order, step_times([examples[i] for i in order], device, steps)):
            times[i] += taken
    return [statistics.median(taken) for taken in times]


def compare_step(cpu_copies: int, cuda_copies: int) -> None:
    """The demo's training step under @profile, and plain: the median over freshly loaded copies.

    Each copy lies elsewhere in memory. How far two plain ones differ is shown beside it.
    """
    for device, copies, steps, builds in ("cpu", cpu_copies, 4, 1), ("cuda", cuda_copies, 20, 4):
        medians = [step_medians(device, steps, builds) for _ in range(copies)]
        ratio = statistics.median(profiled / ((first + second) / 2) for first, profiled, second in medians)
        control = statistics.median(second / first for first, _, second in medians)
        plain = statistics.median(first for first, _, _ in medians)
        name = f"the demo's training step, {device}"
        print(f"{name:42} {ratio:9.3f} times its plain time ({plain * 1e3:.2f} ms; two plain ones {control:.3f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else 9
    gc.collect()
    gc.disable()  # its runs would fall on one side or the other by chance
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, simulated GPU: {torch.cuda.get_device_name()}")
    compare_elsewhere(200_000, rounds)
    compare_idle_line(rounds)
    compare_allocation(rounds)
    compare_step(rounds * 3, rounds * 12)
    atexit.unregister(decorators._print_all)  # the tables are not wanted here


if __name__ == "__main__":
    main()
