"""Columns that nobody named: a `LineProfiler` reads the allocator's statistics for the first runs of each line only."""

from __future__ import annotations

import pytest
from gpu_device import environment, gpu
from run_program import run_program

PROGRAM = """\
import torch
from program_support import report
torch.cuda.init()
readings = 0
original = torch._C._cuda_memoryStats
def counted(device):
    global readings
    readings += 1
    return original(device)
torch._C._cuda_memoryStats = counted
from pytorch_memlab_c import LineProfiler

def f(n):
    for _ in range(n):
        x = torch.empty(100, device="cuda")
        y = x.shape

def readings_of(n, **options):
    global readings
    with LineProfiler(f, device="cuda:0", **options):
        before = readings
        f(n)
        return readings - before

report(few={few}, many={many})
"""


def counts(tmp_path, options=""):
    calls = {name: f"readings_of({n}{options})" for name, n in (("few", 300), ("many", 3000))}
    return run_program(PROGRAM.format(**calls), tmp_path, env=environment()).values


@gpu()
def test_lines_that_allocate_nothing_stop_being_read_too(tmp_path):
    values = counts(tmp_path)
    assert 100 <= values["few"] <= 350
    assert values["many"] == values["few"]


@gpu()
@pytest.mark.parametrize("column", ["inactive_split_bytes.all.peak"])
def test_columns_that_were_named_are_read_for_every_run(tmp_path, column):
    values = counts(tmp_path, f", columns=[{column!r}]")
    assert values["many"] > 5 * values["few"] > 1000
