"""Runs random programs on two simulated GPUs under the engine and under the reference tracer at once, and compares
every
figure. Usage: agreement.py FIRST_SEED COUNT. Each program runs three times: measured by events, by statistics, and with
its functions decorated.

In the first two both tracers watch the same run, the reference below the engine; so each also shows whether the other
is
invisible. Decorated functions are run alone, since a tracer below changes what the hook does.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from pytorch_memlab_c import LineProfiler, _native, profile, simulate
from pytorch_memlab_c.engine import following
from pytorch_memlab_c.line_profiler import decorators

simulate.enable("a100-40gb", count=2)

import torch  # noqa: E402
from random_programs import Writer  # noqa: E402
from reference_tracer import ReferenceTracer  # noqa: E402

DEVICES = 2


class Failure(Exception):
    pass


def fail(tensor: Any) -> None:
    raise Failure


def spike(tensor: Any, size: int) -> None:
    torch.empty(size, dtype=torch.uint8, device=tensor.device)


def record(tensor: Any) -> None:
    if tensor is not None and tensor.numel():
        tensor.record_stream(STREAMS[tensor.device.index])


def second_of(first: Any, second: Any) -> Any:
    return second


STREAMS = [torch.cuda.Stream(device) for device in range(DEVICES)]
HELPERS = {
    "torch": torch,
    "Failure": Failure,
    "fail": fail,
    "spike": spike,
    "record": record,
    "second_of": second_of,
}


def build(seed: int) -> tuple[str, dict[str, Any], list[Any]]:
    writer = Writer(seed, DEVICES)
    source = writer.source()
    namespace = dict(HELPERS)
    exec(compile(source, f"<program {seed}>", "exec"), namespace)
    return source, namespace, [namespace[name] for name in writer.measured()]


def run(program: Any) -> str:
    try:
        program([], 0)
    except Exception as error:  # a program may fail, if it fails the same way each time
        return f"{type(error).__name__}: {error}"
    return "done"


def expected_rows(reference: ReferenceTracer) -> dict[Any, tuple[Any, ...]]:
    rows = {}
    for (code, line, device), peaks in reference.peaks.items():
        nets = reference.nets[code, line, device]
        summary = (nets[0], sum(nets), max(nets), nets[-1])
        rows[code, line, device] = (reference.hits[code, line], len(nets), *peaks, *summary)
    return rows


def counted_rows(profiler: LineProfiler) -> dict[Any, tuple[Any, ...]]:
    rows = {}
    for counted in profiler._tracer.snapshot():
        for line in counted.lines:
            for device in range(DEVICES):
                stats = line.stats_by_slot[1 + device]
                peaks = stats.active_peak_bytes, stats.allocated_peak_bytes, stats.reserved_peak_bytes
                nets = stats.net_first_bytes, stats.net_sum_bytes, stats.net_max_bytes, stats.net_last_bytes
                rows[counted.code, line.line, device] = (line.hits, stats.runs, *peaks, *nets)
    return rows


def check(seed: int, statistics_only: bool) -> None:
    source, namespace, measured = build(seed)
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    _native.use_statistics_only(statistics_only)
    profiler = LineProfiler(*measured, columns=())
    reference = ReferenceTracer(*measured, devices=DEVICES)
    with reference:
        with profiler:
            run(namespace["f0"])
    expected, counted = expected_rows(reference), counted_rows(profiler)
    compare(seed, "statistics" if statistics_only else "events", source, expected, counted)
    if not statistics_only:
        compare(seed, "decorated", source, by_place(expected), by_place(decorated_rows(seed)))


def by_place(rows: dict[Any, Any]) -> dict[Any, Any]:
    """By name instead of code object, as the program is compiled anew."""
    return {(code.co_name, line, device): row for (code, line, device), row in rows.items()}


def decorated_rows(seed: int) -> dict[Any, tuple[Any, ...]]:
    _, namespace, measured = build(seed)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    for function in measured:
        namespace[function.__name__] = profile(function)
    run(namespace["f0"])
    rows: dict[Any, tuple[Any, ...]] = {}
    for profiler in decorators._profilers:
        rows.update(counted_rows(profiler))
    decorators._profilers.clear()
    return rows


def compare(seed: int, way: str, source: str, expected: dict[Any, Any], counted: dict[Any, Any]) -> None:
    wrong = [key for key in expected if counted.get(key) != expected[key]]
    if wrong or set(counted) - set(expected):
        report(seed, way, source, wrong, expected, counted)


def report(seed: int, way: str, source: str, wrong: list[Any], expected: Any, counted: Any) -> None:
    print(f"seed {seed}, {way}: {len(wrong)} of {len(expected)} rows differ")
    print("hits, runs, active, allocated, reserved peaks, net first, sum, max, last, later runs")
    for code, line, device in wrong[:10]:
        key = code, line, device
        name = getattr(code, "co_name", code)
        print(f"  {name} line {line} cuda:{device}: {counted.get(key)}, reference {expected[key]}")
    print("\n".join(f"{i:4} {text}" for i, text in enumerate(source.splitlines(), 1)))
    sys.exit(1)


def main(first: int, count: int) -> None:
    following.prepare()
    for device in range(DEVICES):  # every device is known from the start
        torch.empty(1, device=f"cuda:{device}")
    for seed in range(first, first + count):
        check(seed, statistics_only=False)
        check(seed, statistics_only=True)
    print(f"{count} programs agree")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
