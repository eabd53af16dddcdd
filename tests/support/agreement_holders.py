"""Runs random programs on two simulated GPUs under the engine and under PyTorch's memory history, and compares who
holds
the peak: every line, every byte. Usage: agreement_holders.py FIRST_SEED COUNT. Each program runs under a `LineProfiler`
and with its functions decorated."""

from __future__ import annotations

import gc
import linecache
import sys
from typing import Any

from agreement import DEVICES, HELPERS, run, torch
from holders_account import History, Lines, told
from random_programs import Writer

from pytorch_memlab_c import LineProfiler, clear_global_line_profiler, profile
from pytorch_memlab_c.line_profiler import decorators


def build(seed: int) -> tuple[str, dict[str, Any], list[Any]]:
    writer = Writer(seed, DEVICES)
    source, name = writer.source(), f"<program {seed}>"
    namespace = dict(HELPERS)
    exec(compile(source, name, "exec"), namespace)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return source, namespace, [namespace[name] for name in writer.measured()]


def check(seed: int, decorated: bool) -> None:
    source, namespace, measured = build(seed)
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(0)
    torch.cuda.reset_peak_memory_stats(1)
    history, profiler = History(), LineProfiler(*measured, columns=())
    history.start()
    if decorated:
        for function in measured:
            namespace[function.__name__] = profile(function)
        clear_global_line_profiler()
        run(namespace["f0"])
        records = decorators._book.records()
        decorators._profilers.clear()
    else:
        with profiler:
            run(namespace["f0"])
        records = profiler.records().holders
    history.stop()
    compare(seed, source, history, Lines(measured), records, "decorated" if decorated else "LineProfiler")


def compare(seed: int, source: str, history: History, lines: Lines, records: Any, way: str) -> None:
    peaks = {peak.device: peak for peak in records.peaks}
    for device in range(DEVICES):
        expected = history.account(device, lines.of)
        peak = peaks.get(f"cuda:{device}")
        counter = torch.cuda.memory_stats(device)["active_bytes.all.peak"]
        assert expected.peak == counter, (seed, device, "the account is wrong", expected.peak, counter)
        got = (peak.peak, told(peak)) if peak else (0, {})
        if got != (expected.peak, expected.holders):
            print("\n".join(f"{i:4} {text}" for i, text in enumerate(source.splitlines(), 1)))
            print(f"seed {seed}, {way}, cuda:{device}: told {got}\nhistory {expected}")
            sys.exit(1)


def main(first: int, count: int) -> None:
    for device in range(DEVICES):
        torch.empty(1, device=f"cuda:{device}")
    for seed in range(first, first + count):
        check(seed, decorated=False)
        check(seed, decorated=True)
    print(f"{count} programs agree")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
