"""1,000 random loops, compared with a plain model of what their lines hold: with made-up bytes, with CPU tensors, and
on a GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from gpu_device import environment, gpu
from growth_model import check, program
from program_support import OwnedBlock
from run_program import SUPPORT, run_program

TENSORS = SUPPORT / "growth_tensors.py"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def join(old: OwnedBlock | None, size: int) -> OwnedBlock:
    return OwnedBlock(size + (old.size if old else 0))


def test_the_loops_are_of_many_kinds():
    """Not one-sided: about half of the lines are to be named."""
    lines = [line for seed in range(400) for line in program(seed, autograd=True).lines]
    named = sum(line.bytes_per_run() is not None for line in lines)
    assert 0.3 < named / len(lines) < 0.65


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_made_up_bytes(first: int):
    wrong = [
        text for seed in range(first, first + 100) for text in check(seed, {"make": OwnedBlock, "join": join}, "cpu")
    ]
    assert not wrong, "\n".join(wrong)


def check_tensors(tmp_path: Path, device: str, first: int, env: Any = None) -> None:
    command = ["program.py", device, str(first), str(first + 100)]
    values = run_program(TENSORS.read_text(), tmp_path, command=command, env=env, timeout=300).values
    assert values["loops"] == 100 and not values["wrong"], "\n".join(values["wrong"])


@needs_torch
@pytest.mark.parametrize("first", range(600, 800, 100))
def test_cpu_tensors(tmp_path: Path, first: int):
    check_tensors(tmp_path, "cpu", first)


@gpu()
@pytest.mark.parametrize("first", range(800, 1000, 100))
def test_gpu_tensors(tmp_path: Path, first: int):
    check_tensors(tmp_path, "cuda:0", first, environment())
