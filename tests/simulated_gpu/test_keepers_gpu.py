"""What keeps tensors alive on a GPU: in the report of a run whose memory ran out, or whose lines grow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_device import simulated
from run_program import run_program

pytestmark = simulated()
EIGHT = {"PYTORCH_MEMLAB_SIMULATE": "8GB@9.0"}
RUN = ["-m", "pytorch_memlab_c", "run", "-o", "report.json", "program.py"]
HEAD = """
import torch

class Buffer:
    def __init__(self):
        self.items = []

def step(buffer):
    acts = [torch.empty(1 << 26, dtype=torch.uint8, device="cuda") for _ in range(3)]
    buffer.items.append(acts[0])
    return acts
"""
OUT_OF_MEMORY = """
def train():
    buffer = Buffer()
    other = [torch.empty(1 << 20, device="cuda")]
    for i in range(1000):
        step(buffer)

train()
"""
GROWS = """
buffer = Buffer()
for i in range(20):
    step(buffer)
"""
CAUSED = """
def train():
    buffer = Buffer()
    try:
        while True:
            step(buffer)
    except RuntimeError as error:
        raise ValueError("too large") from error

train()
"""


def kept(tmp_path: Path, program: str) -> tuple[str, list[tuple[str, int, str]]]:
    run_program(HEAD + program, tmp_path, env=EIGHT, command=RUN, check=False)
    found = json.loads((tmp_path / "report.json").read_text())["keepers"]
    return found["when"], [(row[0], row[2], row[3]) for row in found["kept"]]


@pytest.mark.parametrize(
    ("program", "line", "error"),
    [
        (OUT_OF_MEMORY, 17, "the OutOfMemoryError that is being handled"),
        (CAUSED, 19, "ValueError.__cause__.__traceback__ <- the ValueError that is being handled"),
    ],
)
def test_an_uncaught_out_of_memory(tmp_path, program, line, error):
    when, rows = kept(tmp_path, program)
    assert when == "when memory ran out"
    device, number, text = rows[0]
    assert device == "cuda:0" and number > 100
    assert text == f"{number} tensors in Buffer.items <- buffer, local of train at program.py:{line} <- {error}"


def test_lines_that_grow(tmp_path):
    when, rows = kept(tmp_path, GROWS)
    assert when == "at the end"
    assert rows == [("cuda:0", 20, "20 tensors in Buffer.items <- buffer, global of program.py")]


def test_not_where_nothing_grows(tmp_path):
    assert kept(tmp_path, "buffer = Buffer()\nstep(buffer)\n") == ("", [])
