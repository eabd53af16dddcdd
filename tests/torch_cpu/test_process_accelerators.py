"""XPU and MPS: figures from PyTorch's accelerator statistics, on a made-up backend (fake_accelerator.py).

Their allocators have one peak counter and report no events: what is measured here must not take the user's peak.
"""

from __future__ import annotations

import pytest
from run_program import run_program

pytest.importorskip("torch")
START = """
import fake_accelerator as fake
from fake_accelerator import STEP, allocate, free
fake.install({install})
import torch
from pytorch_memlab_c import measure_peak_memory, peak_memory
from program_support import report

"""


def run(install, source, tmp_path, **more):
    from textwrap import dedent

    return run_program(START.format(install=install) + dedent(source), tmp_path, **more).values


KINDS = pytest.mark.parametrize("kind, name", [("mps", "mps"), ("xpu", "xpu:0")])


@KINDS
def test_reserved_and_allocated_peaks(tmp_path, kind, name):
    values = run(
        f"{kind!r}",
        f"""
        allocate(100)
        allocate(5 * STEP); free(5 * STEP)  # the peak before
        def workload():
            fake.calls.append("workload")
            allocate(8 * STEP); free(8 * STEP)
            allocate(10)
        report(calls=fake.calls, **measure_peak_memory(workload, device="{kind}"))
        report(idle=measure_peak_memory(lambda: None, device=torch.device("{kind}", 0)))
        """,
        tmp_path,
    )
    assert values.pop("calls")[-2:] == ["workload", "synchronize" + (" 0" if kind == "xpu" else "")]
    step = 1 << 20
    idle = values.pop("idle")
    assert values == {
        "device": name,
        "metric": "pytorch_reserved_bytes",
        "baseline_bytes": 6 * step,
        "peak_bytes": 9 * step,
        "delta_bytes": 3 * step,
        "allocated_peak_bytes": 8 * step + 100,
        "reserved_peak_bytes": 9 * step,
    }
    assert (idle["device"], idle["delta_bytes"], idle["allocated_peak_bytes"]) == (name, 0, 110)


@KINDS
def test_blocks_overlap_and_the_users_peak_stays(tmp_path, kind, name):
    """Case 42: each block has its own maximum over one counter, and what the user reads is as without them."""
    values = run(
        f"{kind!r}",
        f"""
        def user():
            return torch.accelerator.memory.max_memory_allocated(0)

        allocate(300); free(300)
        first, second = peak_memory("{name}"), peak_memory("{name}")
        with first:
            allocate(200)
            with second:
                allocate(50); free(50)
                live = second.peak_bytes
                seen = user()
            free(200)
            torch.accelerator.memory.reset_peak_memory_stats(0)
            after_reset = user()
            allocate(20); free(20)
        allocate(7000); free(7000)
        report(first=first.peak_bytes, second=second.peak_bytes, base=second.baseline_bytes, live=live,
               reserved=first.reserved_peak_bytes, seen=seen, after_reset=after_reset, last=user())
        """,
        tmp_path,
    )
    assert values == {
        "first": 250,
        "second": 250,
        "base": 200,
        "live": 250,
        "reserved": 1 << 20,
        "seen": 300,
        "after_reset": 0,
        "last": 7000,
    }


def test_a_peak_between_two_blocks_belongs_to_neither(tmp_path):
    values = run(
        "'mps'",
        """
        deltas = []
        for size in (10, 20):
            with peak_memory("mps") as p:
                allocate(size); free(size)
            deltas.append(p.delta_bytes)
            allocate(9000); free(9000)
        report(deltas=deltas)
        """,
        tmp_path,
    )
    assert values["deltas"] == [10, 20]


def test_the_second_of_two_xpus(tmp_path):
    values = run(
        "'xpu', count=2",
        """
        def workload():
            allocate(STEP, device=0)
            allocate(3 * STEP, device=1)
        report(second=measure_peak_memory(workload, device="xpu:1"))
        report(current=measure_peak_memory(lambda: None, device="xpu")["device"],
               xpu=torch.xpu.memory.max_memory_allocated(1))
        """,
        tmp_path,
    )
    assert (values["second"]["device"], values["second"]["delta_bytes"]) == ("xpu:1", 3 << 20)
    assert (values["current"], values["xpu"]) == ("xpu:1", 3 << 20)


@KINDS
def test_an_exception_passes_and_leaves_nothing_open(tmp_path, kind, name):
    values = run(
        f"{kind!r}",
        f"""
        from pytorch_memlab_c.process import accelerators
        try:
            measure_peak_memory(lambda: 1 / 0, device="{kind}")
        except ZeroDivisionError:
            report(passed=True)
        report(windows=accelerators._open_windows)
        """,
        tmp_path,
    )
    assert values == {"passed": True, "windows": 0}


def outcome(install, device, tmp_path):
    """What measuring on `device` raises: [NotImplementedError or RuntimeError, message], and whether the workload
    ran."""
    return run(
        install,
        f"""
        ran = []
        try:
            measure_peak_memory(lambda: ran.append(1), device="{device}")
        except RuntimeError as error:
            report(error=[type(error).__name__, str(error)], ran=ran)
        """,
        tmp_path,
    )


@pytest.mark.parametrize(
    "install, device, kind, message",
    [
        ("'mps', count=0", "mps", "RuntimeError", "no such device"),
        ("'mps'", "mps:1", "RuntimeError", "mps:1 is not there"),
        ("'xpu', count=0", "xpu", "RuntimeError", "none here"),
        ("'xpu', count=2", "xpu:2", "RuntimeError", "xpu:0 to xpu:1"),
        ("'mps'", "xpu", "NotImplementedError", "no XPU support"),
        ("'xpu'", "mps", "NotImplementedError", "no MPS support"),
        ("'xpu'", "cuda", "NotImplementedError", "no CUDA"),
        ("'mps', without='_accelerator_getDeviceStats'", "mps", "NotImplementedError", "_accelerator_getDeviceStats"),
        ("'xpu', without='_accelerator_resetPeakStats'", "xpu", "NotImplementedError", "_accelerator_resetPeakStats"),
    ],
)
def test_what_is_missing_is_said_before_the_workload_runs(tmp_path, install, device, kind, message):
    values = outcome(install, device, tmp_path)
    assert values["error"][0] == kind and message in values["error"][1]
    assert values["ran"] == []


def test_an_allocator_that_has_no_statistics(tmp_path):
    values = run(
        "'mps'",
        """
        def refuse(device):
            raise RuntimeError("Allocator for mps is not a DeviceAllocator.")
        torch._C._accelerator_getDeviceStats = refuse
        try:
            measure_peak_memory(lambda: None, device="mps")
        except NotImplementedError as error:
            report(error=str(error))
        """,
        tmp_path,
    )
    assert "cannot be measured" in values["error"] and "not a DeviceAllocator" in values["error"]
