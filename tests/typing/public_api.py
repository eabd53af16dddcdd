"""All public names, as a typed program uses them. Not run: `make lint` checks it with `mypy --strict`."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import assert_type

from pytorch_memlab_c import (
    Courtesy,
    LineProfiler,
    LineRecords,
    MemReporter,
    MetricResult,
    YieldedMemory,
    __version__,
    clear_global_line_profiler,
    keepers,
    load_ipython_extension,
    measure_peak_memory,
    measure_peak_rss,
    peak_memory,
    print_stats,
    profile,
    profile_every,
    profile_workload,
    set_target_gpu,
    simulate,
    unload_ipython_extension,
)
from pytorch_memlab_c.cli import main
from pytorch_memlab_c.process import PeakMeasurement, WorkloadReport
from pytorch_memlab_c.snapshot import Snapshot, SnapshotError

# ---- decorators keep the type of what they decorate ----


@profile
def plain(a: int, *rest: str, key: bytes = b"") -> float:
    return a / 2


@profile(columns=("hits", "net"), device="cuda:1", saved=True)
def configured(a: int) -> str:
    return str(a)


@profile_every(10, columns="hits", device="cpu")
def counted(x: list[int]) -> Iterator[int]:
    yield from x


@profile_every()
async def awaited(x: int) -> int:
    return x


@profile
async def streamed() -> AsyncIterator[bytes]:
    yield b""


class Model:
    @profile
    def forward(self, x: float) -> float:
        return x

    @classmethod
    @profile
    def build(cls, size: int) -> Model:
        return cls()

    @staticmethod
    @profile_every(2)
    def scale(x: float) -> float:
        return x

    @property
    @profile
    def width(self) -> int:
        return 1


def decorated() -> None:
    assert_type(plain(1, "a", key=b""), float)
    plain("1")  # type: ignore[arg-type]
    assert_type(configured(1), str)
    configured()  # type: ignore[call-arg]
    assert_type(counted([1]), Iterator[int])
    assert_type(Model().forward(1.0), float)
    assert_type(Model.build(2), Model)
    assert_type(Model.scale(1.0), float)
    assert_type(Model().width, int)
    assert_type(profile(functools.partial(plain, 1)), functools.partial[float])
    square: Callable[[int], int] = profile(lambda x: x * x)
    assert_type(square(2), int)
    profile(3)  # type: ignore[call-overload]
    profile_every("10")  # type: ignore[arg-type]
    print_stats()
    clear_global_line_profiler()


async def waits() -> None:
    assert_type(await awaited(1), int)
    async for chunk in streamed():
        assert_type(chunk, bytes)


# ---- line profiler ----


def lines() -> None:
    with LineProfiler(plain, Model.forward, device="cuda", columns=["hits"], saved=True) as profiler:
        assert_type(profiler, LineProfiler)
    profiler.add_function(configured)
    profiler.enable()
    profiler.disable()
    assert_type(profiler.enabled, bool)
    profiler.columns = "hits"
    profiler.print_stats(plain)
    profiler.to_dataframe(kind="growth").to_csv()
    profiler.to_json("report.json")
    profiler.to_html("report.html")
    profiler.to_csv("report.csv")
    profiler.display().__str__()
    profiler.clear()
    records = profiler.records()
    assert_type(records, LineRecords)
    assert_type(records.to_json(), str)
    assert_type(LineRecords.from_json("report.json"), LineRecords)
    assert_type(LineRecords.from_snapshot([]), LineRecords)
    assert_type(records.to_text(plain, columns="hits", device="all"), str)
    assert_type(records.to_csv(), str)
    assert_type(records.to_html(), str)
    assert_type([line.hits for function in records.functions for line in function.lines], list[int])
    assert_type(records.holders.peaks[0].holders[0].bytes, int)
    with set_target_gpu(1):
        set_target_gpu(None)
    LineProfiler(device=1.5)  # type: ignore[arg-type]


# ---- tensors ----


def tensors() -> None:
    reporter = MemReporter(pre_collect=True)
    reporter.add_optimizer(None)
    reporter.report(verbose=True, device=0, max_rows=None, holders=True)
    before, after = reporter.snapshot(), reporter.snapshot()
    assert_type(keepers(before), list[str])
    MemReporter.diff(before, after).to_csv()
    with Courtesy(progress=False) as courtesy:
        assert_type(courtesy.lent_bytes, int)
    lent = courtesy.yield_memory()
    assert_type(lent, YieldedMemory)
    courtesy.restore()


# ---- workloads ----


def workloads() -> None:
    peak = measure_peak_memory(lambda: None, device="cuda:0")
    assert_type(peak, PeakMeasurement)
    assert_type(peak["peak_bytes"], int)
    assert_type(peak["reserved_peak_bytes"], int)
    assert_type(peak["metric"], str)
    assert_type(peak.get("allocated_peak_bytes"), int | None)
    with peak_memory("cpu") as block:
        assert_type(block, peak_memory)
    assert_type(block.delta_bytes, int)
    assert_type(block.reserved_peak_bytes, int | None)
    rss = measure_peak_rss(["python", "train.py"], cwd="/")
    assert_type(rss, MetricResult)
    assert_type(rss["value"], int | float | None)
    report = profile_workload(lambda: None, device="cpu", trace_path="trace.json.gz")
    assert_type(report, WorkloadReport)
    assert_type(report["schema_version"], int)
    assert_type(report["operators"][0]["cpu_self_seconds"], float)
    assert_type(report["operators"][0]["device_self_seconds"], float | None)
    assert_type(report["context"]["ranked_by"], str)
    assert_type(report["totals"]["cpu_allocated_bytes"]["known_value"], int | float | None)
    assert_type(report["diagnostics"][0]["code"], str)
    assert_type(str(report), str)


# ---- memory snapshots ----


def snapshots() -> None:
    snapshot = Snapshot.load("memory.pickle", progress=False)
    assert_type(snapshot, Snapshot)
    assert_type(Snapshot.from_object({}), Snapshot)
    assert_type(snapshot.to_text(("peak", "oom"), device="cuda:0", frames="user", skip=("package",)), str)
    snapshot.to_html("page.html")
    snapshot.to_json("memory.json")
    snapshot.to_dataframe(device="host").to_csv()
    assert issubclass(SnapshotError, ValueError)


# ---- the simulated GPU, the notebook's extension, the command line ----


def others() -> None:
    simulate.enable("h100-80gb", count=2)
    simulate.enable(memory="24 GB", capability=(8, 9))
    simulate.enable_named("24GB@8.9:2")
    assert_type(simulate.is_enabled(), bool)
    assert_type(simulate.describe(), str)
    assert_type(simulate.presets()["h100-80gb"].total_memory, int)
    assert_type(simulate.ENVIRONMENT_VARIABLE, str)
    assert_type(simulate.presets(), dict[str, simulate.GpuModel])
    assert issubclass(simulate.SimulationUnavailable, RuntimeError)
    load_ipython_extension(None)
    unload_ipython_extension(None)
    assert_type(main(["report", "report.json"]), int)
    assert_type(__version__, str)
