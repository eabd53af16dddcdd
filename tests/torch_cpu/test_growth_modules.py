"""Growth and modules: one forward pass through many layers is one run, also when the model is gone at the end."""

from __future__ import annotations

import pytest
from run_program import run_program

pytest.importorskip("torch")

PROGRAM = """\
import torch
from pytorch_memlab_c import profile

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1000))
    @profile
    def forward(self, x):
        y = x * self.weight
        return y.relu()

def once(kept):
    net = torch.nn.Sequential(*(Scale() for _ in range(24)))
    kept.append(net(torch.ones(1000)))
    {ending}

kept = []
try:
    once(kept)
except ValueError:
    pass
{then}
"""
SECTION = "Lines that keep more memory on every run"


@pytest.mark.parametrize("ending", ["raise ValueError", "pass"])
@pytest.mark.parametrize("then", ["kept.clear()", "del kept[:]; import gc; gc.collect()"])
def test_layers_that_ran_once_and_are_gone(tmp_path, ending, then):
    assert SECTION not in run_program(PROGRAM.format(ending=ending, then=then), tmp_path).stdout


def test_layers_whose_activations_are_kept_run_after_run(tmp_path):
    then = "for _ in range(8): once(kept)"
    program = PROGRAM.format(ending="pass", then=then).replace(
        "    net = torch", "    global net\n    net = globals().get('net') or torch"
    )
    assert SECTION in run_program(program, tmp_path).stdout
