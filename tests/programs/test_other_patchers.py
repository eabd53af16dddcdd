"""Another tool that takes the calls of PyTorch's allocators, or puts them back as it ends: memray does both."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_program import run_program

pytest_plugins = "pytester"
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("memray", reason="memray is not installed")

PROGRAM = """
import memray
import torch
from pytorch_memlab_c import LineProfiler, peak_memory, profile
from program_support import report

M = 1 << 20
inside = []

def f():
    a = torch.ones(M)
    b = torch.ones(2 * M)
    if inside:
        with memray.Tracker(inside.pop()):
            c = torch.ones(M)
    d = torch.ones(3 * M)

def peaks():
    with LineProfiler(f, device="cpu") as profiler:
        f()
    lines = profiler.to_dataframe(columns=["tensor_bytes.peak"])["tensor_bytes.peak"]
    return [int(lines.max()) // M, len(profiler.records().notes)]

def block():
    with peak_memory("cpu") as measured:
        f()
    return [measured.delta_bytes // M, measured.incomplete]

before = [peaks(), block()]
with memray.Tracker("first.bin"):
    during = [peaks(), block()]
    kept = torch.ones(M)
after = [peaks(), block()]
del kept
later = [peaks(), block()]
inside.append("second.bin")
missed = peaks()
inside.append("third.bin")
missed_block = block()
again = [peaks(), block()]
decorated = profile(f, device="cpu")
decorated()
inside.append("fourth.bin")
decorated()
report(before=before, during=during, after=after, later=later, missed=missed, missed_block=missed_block, again=again)
"""


def test_memray_before_during_and_within(tmp_path: Path) -> None:
    run = run_program(PROGRAM, tmp_path)
    whole = [[24, 0], [24, False]]
    values = run.values
    assert values["before"] == values["during"] == values["later"] == values["again"] == whole
    assert values["after"] == [[28, 0], [24, False]]  # `kept` lives, which was made under memray alone
    assert values["missed"][1] == 1 and values["missed_block"][1] is True
    assert "RuntimeWarning: peak_memory of cpu: incomplete: another tool (memray?)" in run.stderr
    assert run.stdout.count("note: incomplete: another tool (memray?)") == 1


def test_a_limit_that_could_not_be_checked_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import memray, pytest, torch

        @pytest.mark.limit_tensor_memory("1 GB", device="cpu")
        def test_within():
            with memray.Tracker("within.bin"):
                torch.ones(10)

        @pytest.mark.limit_tensor_memory("1 MB", device="cpu")
        def test_after():
            torch.ones(1 << 20)

        @pytest.mark.limit_tensor_memory("5 MB", device="cpu")
        def test_fits():
            torch.ones(1 << 20)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*the limit '1 GB' cannot be checked: incomplete: another tool*"])
