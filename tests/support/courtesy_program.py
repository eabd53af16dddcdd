"""What test programs about `Courtesy` on a GPU start with: digests of tensors, memory levels, and whether a use is
refused."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from gpu_device import environment
from run_program import run_program

START = """
import hashlib, threading, warnings
import torch
from program_support import report
from pytorch_memlab_c import Courtesy
from pytorch_memlab_c.courtesy import guard, lending, lender

KIB, MIB = 1 << 10, 1 << 20

def bits(tensor):
    return hashlib.sha256(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()

def random(*shape, device="cuda", **options):
    return torch.randn(shape).to(device, **options)

def levels(device=0):
    return [torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)]

def refused(use):
    try:
        use()
    except RuntimeError as error:
        return "is lent" in str(error) and "restore()" in str(error)
    return False

def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught]

"""


def run(source: str, tmp_path: Path) -> dict[str, Any]:
    return run_program(START + dedent(source), tmp_path, env=environment()).values
