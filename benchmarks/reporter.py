"""What a memory report costs: this project beside pytorch_memlab, in one process, on the same live objects.

Usage: python benchmarks/reporter.py [--tensors N] [--objects N] [--rounds N] [--training] [--records] Needs PyTorch
and, for the peer's figures, `pip install --no-deps pytorch_memlab==0.3.2 calmsize`. Plain tensors among plain lists;
--training: parameters, gradients and states of Adam (a fifth, a fifth, three fifths), named; --records: a data set of
records with a list and a dict each, which take more memory. Both print their report to a string. Figures are processor
time of one thread, the least of alternating rounds. Absolute times are this machine's; compare the ratios. The default
report puts the smallest rows together in one line; all rows are timed too.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import io
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


def plain_tensors(tensors: int) -> list[Any]:
    import torch

    return [torch.ones(10 + i % 7) for i in range(tensors)]


def other_objects(objects: int, records: bool) -> list[Any]:
    """Objects until about this many are under the collector's eyes."""
    missing = objects - len(gc.get_objects())
    return [Record(i) for i in range(missing // 4)] if records else [[] for _ in range(missing)]


def seconds(report: Callable[[], Any]) -> tuple[float, str]:
    output = io.StringIO()
    start = time.process_time()
    with contextlib.redirect_stdout(output):
        report()
    return time.process_time() - start, output.getvalue()


def reports(model: Any, optimizer: Any) -> dict[str, Callable[[], Any]]:
    from pytorch_memlab_c import MemReporter

    ours = prepared(MemReporter, model, optimizer)
    found = {"pytorch_memlab_c": ours.report, "pytorch_memlab_c, all rows": lambda: ours.report(max_rows=None)}
    found["(listing the objects)"] = gc.get_objects
    if importlib.util.find_spec("pytorch_memlab"):
        with contextlib.redirect_stdout(io.StringIO()):
            from pytorch_memlab import MemReporter as Peer
        found["pytorch_memlab"] = prepared(Peer, model, optimizer).report
    return found


def prepared(kind: Any, model: Any, optimizer: Any) -> Any:
    reporter = kind(model)
    if optimizer is not None:
        reporter.add_optimizer(optimizer)
    return reporter


def compare(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    model, optimizer = training_state(options.tensors) if options.training else (None, None)
    kept = [] if options.training else plain_tensors(options.tensors)
    ways = reports(model, optimizer)
    kept += other_objects(options.objects, options.records)
    gc.collect()
    print(f"{options.tensors:,} tensors among {len(gc.get_objects()):,} objects, {options.rounds} rounds")
    runs: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, report in ways.items():
            runs[way].append(seconds(report)[0])
    show({way: min(times) for way, times in runs.items()})


def show(least: dict[str, float]) -> None:
    peer = least.get("pytorch_memlab")
    for way, best in least.items():
        times = f"; pytorch_memlab takes {peer / best:.1f} times as long" if peer and "_c" in way else ""
        print(f"{way:28} {best * 1e3:8.1f} ms{times}")
    if peer is None:
        print("pytorch_memlab is not installed: no peer's figures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensors", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=1_200_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--records", action="store_true")
    compare(parser.parse_args())


if __name__ == "__main__":
    main()
