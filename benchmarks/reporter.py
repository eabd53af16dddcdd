"""What a memory report costs: this project beside pytorch_memlab, in one process, on the same live objects.

Usage: python benchmarks/reporter.py [--tensors N] [--objects N] [--rounds N]
Needs PyTorch and, for the peer's figures, `pip install --no-deps pytorch_memlab==0.3.2 calmsize`.
The objects: a training state (parameters, gradients, states of Adam: a fifth, a fifth and three fifths of the tensors) among
the objects of a data set held in Python (records with a list and a dict each, and their index). Both print their report
to a string. Figures are processor time of one thread, the median of alternating rounds. Absolute times are this
machine's; compare the ratios. Our default report puts the smallest rows together in one line; all rows are timed too.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import io
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any


class Record:
    """One sample of the data set."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens = [number, number + 1]
        self.meta = {"source": [number]}


def training_state(tensors: int) -> tuple[Any, Any]:
    """A model and its optimizer after one step: five tensors for each parameter."""
    import torch

    model = torch.nn.ParameterList(torch.ones(10 + i % 7) for i in range(tensors // 5))
    optimizer = torch.optim.Adam(model.parameters())
    sum((p.sum() for p in model), torch.zeros(())).backward()
    optimizer.step()
    return model, optimizer


def records(objects: int) -> list[Any]:
    """Records until about this many objects are under the collector's eyes."""
    missing = objects - len(gc.get_objects())
    return [Record(i) for i in range(missing // 4)]


def seconds(report: Callable[[], Any]) -> tuple[float, str]:
    output = io.StringIO()
    start = time.process_time()
    with contextlib.redirect_stdout(output):
        report()
    return time.process_time() - start, output.getvalue()


def reports(model: Any, optimizer: Any) -> dict[str, Callable[[], Any]]:
    from pytorch_memlab_c import MemReporter

    ours = MemReporter(model)
    ours.add_optimizer(optimizer)
    found = {"pytorch_memlab_c": ours.report, "pytorch_memlab_c, all rows": lambda: ours.report(max_rows=None)}
    found["(listing the objects)"] = gc.get_objects
    if importlib.util.find_spec("pytorch_memlab"):
        with contextlib.redirect_stdout(io.StringIO()):
            from pytorch_memlab import MemReporter as Peer
        theirs = Peer(model)
        theirs.add_optimizer(optimizer)
        found["pytorch_memlab"] = theirs.report
    return found


def compare(tensors: int, objects: int, rounds: int) -> None:
    warnings.simplefilter("ignore")
    model, optimizer = training_state(tensors)
    data = records(objects)
    ways = reports(model, optimizer)
    gc.collect()
    print(f"{tensors:,} tensors among {len(gc.get_objects()):,} objects ({len(data):,} records), {rounds} rounds")
    runs: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, report in ways.items():
            runs[way].append(seconds(report)[0])
    show({way: statistics.median(times) for way, times in runs.items()})


def show(medians: dict[str, float]) -> None:
    peer = medians.get("pytorch_memlab")
    for way, median in medians.items():
        times = f"; pytorch_memlab takes {peer / median:.1f} times as long" if peer and "_c" in way else ""
        print(f"{way:28} {median * 1e3:8.1f} ms{times}")
    if peer is None:
        print("pytorch_memlab is not installed: no peer's figures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensors", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=1_200_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    compare(options.tensors, options.objects, options.rounds)


if __name__ == "__main__":
    main()
