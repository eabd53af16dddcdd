"""`measure_peak_memory` and `peak_memory` on a CUDA GPU, against PyTorch's own counters."""

from __future__ import annotations

import pytest
from gpu_device import environment, gpu
from run_program import run_program

SAMPLERS = pytest.mark.parametrize("sampler", ["events", "statistics"])
START = """
import torch
from program_support import report
from pytorch_memlab_c import measure_peak_memory, peak_memory

def training():
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(64, 256, device="cuda")
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        held = torch.empty(7_000_000, device="cuda")
    return step

"""


def run(source, tmp_path, sampler="events"):
    from textwrap import dedent

    env = {**environment(), "PYTORCH_MEMLAB_SAMPLER": sampler}
    return run_program(START + dedent(source), tmp_path, env=env).values


@gpu()
@SAMPLERS
def test_a_training_step_equals_pytorchs_counters(tmp_path, sampler):
    values = run(
        """
        step = training()
        reserved = torch.cuda.memory_reserved()
        torch.cuda.reset_peak_memory_stats()
        result = measure_peak_memory(step, device="cuda")
        report(result=result, reserved=reserved, max_reserved=torch.cuda.max_memory_reserved(),
               max_allocated=torch.cuda.max_memory_allocated())
        """,
        tmp_path,
        sampler,
    )
    assert values["result"] == {
        "device": "cuda:0",
        "metric": "pytorch_reserved_bytes",
        "baseline_bytes": values["reserved"],
        "peak_bytes": values["max_reserved"],
        "delta_bytes": values["max_reserved"] - values["reserved"],
        "allocated_peak_bytes": values["max_allocated"],
        "reserved_peak_bytes": values["max_reserved"],
    }
    assert values["max_allocated"] > 28_000_000


@gpu()
@SAMPLERS
def test_the_same_as_without_measuring(tmp_path, sampler):
    """Case 42: the program's own counters, and the peaks it reads, are those it has alone."""
    program = """
        step = training()
        spike = torch.empty(30_000_000, device="cuda")
        del spike
        {run}
        report(counters=[torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(),
                         torch.cuda.memory_allocated(), torch.cuda.memory_reserved(),
                         torch.cuda.memory_stats()["allocation.all.peak"]])
    """
    plain = run(program.format(run="step()"), tmp_path, sampler)
    (tmp_path / "results.json").unlink()
    measured = run(
        program.format(run='result = measure_peak_memory(step, device="cuda"); report(**result)'), tmp_path, sampler
    )
    assert measured["counters"] == plain["counters"]
    assert measured["allocated_peak_bytes"] < plain["counters"][0], "the spike before it is not the workload's"


@gpu()
@SAMPLERS
def test_blocks_have_their_own_peaks(tmp_path, sampler):
    """pytorch#16266: a region's peak without the one global counter."""
    values = run(
        """
        def spike(megabytes):
            torch.empty(megabytes * 2**20, dtype=torch.uint8, device="cuda")

        base = torch.empty(2**20, dtype=torch.uint8, device="cuda")
        spike(100)
        torch.cuda.empty_cache()
        with peak_memory("cuda:0") as outer:
            spike(40)
            with peak_memory("cuda") as inner:
                spike(24)
                live = inner.peak_bytes
                torch.cuda.reset_peak_memory_stats()
                spike(30)
            after = torch.cuda.max_memory_allocated()
        spike(200)
        report(**{name: [p.device, p.baseline_bytes, p.peak_bytes, p.delta_bytes, p.reserved_peak_bytes]
                  for name, p in (("outer", outer), ("inner", inner))}, live=live, after=after,
               total=torch.cuda.max_memory_allocated())
        """,
        tmp_path,
        sampler,
    )
    mib = 1 << 20
    assert values["outer"] == ["cuda:0", mib, 41 * mib, 40 * mib, 42 * mib]
    assert values["inner"] == ["cuda:0", mib, 31 * mib, 30 * mib, 42 * mib]
    assert (values["live"], values["after"], values["total"]) == (25 * mib, 31 * mib, 201 * mib)


@gpu()
@SAMPLERS
def test_inside_a_profiled_line_both_are_right(tmp_path, sampler):
    values = run(
        """
        from pytorch_memlab_c import LineProfiler

        def work():
            with peak_memory("cuda:0") as p:
                x = torch.empty(2**20, dtype=torch.uint8, device="cuda")
                del x
                y = torch.empty(4 * 2**20, dtype=torch.uint8, device="cuda")
                del y
            return p

        torch.empty(1, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        with LineProfiler(work) as profiler:
            p = work()
        rows = profiler.to_dataframe(columns=["active_bytes.all.peak"]).set_index("code")
        report(x=int(rows.filter(like="x = torch", axis=0).iloc[0, 0]), p=p.peak_bytes,
               y=int(rows.filter(like="y = torch", axis=0).iloc[0, 0]), pytorch=torch.cuda.max_memory_allocated())
        """,
        tmp_path,
        sampler,
    )
    assert values["x"] == 1 << 20
    assert values["p"] == values["y"] == values["pytorch"] == 4 << 20


@gpu()
@SAMPLERS
def test_measurements_nest_run_in_threads_and_survive_exceptions(tmp_path, sampler):
    values = run(
        """
        import threading

        def workload():
            x = torch.empty(50 * 2**20, dtype=torch.uint8, device="cuda")
            report(inner=measure_peak_memory(lambda: torch.empty(30 * 2**20, dtype=torch.uint8, device="cuda"),
                device="cuda"))

        torch.empty(1, device="cuda")
        results = []
        threads = [threading.Thread(target=lambda: results.append(measure_peak_memory(lambda: torch.empty(2**20,
            device="cuda"),
                                                                                    device="cuda"))) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        report(least=min(r["allocated_peak_bytes"] for r in results), threads=len(results))
        report(outer=measure_peak_memory(workload, device="cuda"))

        def failing():
            torch.empty(2**50, device="cuda")
        try:
            measure_peak_memory(failing, device="cuda")
        except torch.OutOfMemoryError as error:
            report(error=type(error).__name__)
        """,
        tmp_path,
        sampler,
    )
    assert values["inner"]["allocated_peak_bytes"] == values["outer"]["allocated_peak_bytes"] == 80 << 20
    assert values["threads"] == 4 and values["least"] >= 4 << 20
    assert values["error"] == "OutOfMemoryError"


@gpu(devices=2)
@SAMPLERS
def test_each_device_has_its_own(tmp_path, sampler):
    values = run(
        """
        def workload():
            torch.empty(3 * 2**20, dtype=torch.uint8, device="cuda:0")
            torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda:1")

        report(first=measure_peak_memory(workload, device=torch.device("cuda:0")))
        torch.cuda.empty_cache()
        with torch.cuda.device(1):
            report(current=measure_peak_memory(workload, device="cuda"))
        report(reserved=[torch.cuda.max_memory_reserved(0), torch.cuda.max_memory_reserved(1)])
        """,
        tmp_path,
        sampler,
    )
    assert values["first"]["allocated_peak_bytes"] == 3 << 20
    assert (values["current"]["device"], values["current"]["allocated_peak_bytes"]) == ("cuda:1", 64 << 20)
    assert [values["first"]["peak_bytes"], values["current"]["peak_bytes"]] == values["reserved"]


@gpu()
def test_a_block_does_not_start_cuda(tmp_path):
    values = run(
        """
        with peak_memory("cuda") as p:
            pass
        report(started=torch.cuda.is_initialized(), peak=p.peak_bytes, device=p.device)
        """,
        tmp_path,
    )
    assert values == {"started": False, "peak": 0, "device": "cuda:0"}


@gpu()
def test_a_gpu_that_is_not_there(tmp_path):
    values = run(
        """
        try:
            measure_peak_memory(lambda: report(ran=True), device="cuda:63")
        except RuntimeError as error:
            report(error=[type(error).__name__, str(error)])
        """,
        tmp_path,
    )
    assert values["error"][0] == "RuntimeError" and "cuda:63 is not there" in values["error"][1]
    assert "ran" not in values
