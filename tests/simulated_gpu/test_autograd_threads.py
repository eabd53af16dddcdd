"""Functions that autograd's threads run: seen under `@profile`, and elsewhere never said not to have run."""

from __future__ import annotations

import pytest
from gpu_device import environment, gpu
from run_program import run_program

PROGRAM = """\
import torch
from pytorch_memlab_c import LineProfiler, profile

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    {decorator}
    @staticmethod
    def backward(ctx, grad):
        ran.append(1)
        return grad * 2

{decorator}
def hook(grad):
    ran.append(2)
    return grad + 1

def main():
    x = torch.ones(1000, device="cuda", requires_grad=True)
    x.register_hook(hook)
    Double.apply(x).sum().backward()
    torch.cuda.synchronize()

ran = []
"""
ENABLED = """\
main()  # autograd's threads are there
with LineProfiler(Double.backward, hook, main) as profiler:
    main()
profiler.print_stats()
assert sorted(ran) == [1, 1, 2, 2]
"""


@gpu()
def test_a_function_that_ran_is_never_said_not_to_have_run(tmp_path):
    out = run_program(PROGRAM.format(decorator="") + ENABLED, tmp_path, env=environment()).stdout
    assert "never called" not in out
    for name in ("Double.backward", "hook"):
        table = out.partition(f"## {name}\n")[2].partition("## ")[0]
        assert "no call was seen" not in table or "autograd's for a GPU" in table


@gpu()
@pytest.mark.parametrize("words", [["run", "-f", "hook", "-f", "Double.backward"]])
def test_by_the_command_line(tmp_path, words):
    program = PROGRAM.format(decorator="") + "main()\nmain()\n"
    command = ["-m", "pytorch_memlab_c", *words, "program.py"]
    out = run_program(program, tmp_path, env=environment(), command=command).stdout
    assert "## hook" in out and "never called" not in out


@gpu()
def test_profile_sees_autograds_threads(tmp_path):
    out = run_program(PROGRAM.format(decorator="@profile") + "main()\nmain()\n", tmp_path, env=environment()).stdout
    assert "no call was seen" not in out and "never called" not in out
    rows = [line.split() for line in out.splitlines() if "ran.append(" in line]
    assert [row[-3] for row in rows] == ["2", "2"], out
