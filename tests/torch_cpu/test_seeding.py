"""CPU memory that lived before the first measurement of a process is in its figures, as if it had been seen to come."""

from __future__ import annotations

import pytest
from run_program import run_program

pytest.importorskip("torch")

PROGRAM = """
import gc, torch
from program_support import report
from pytorch_memlab_c import measure_peak_memory

def measure():
    gc.collect()
    return measure_peak_memory(lambda: None, device="cpu")["baseline_bytes"]

if {early}:
    measure()
{make}
before = measure()
del kept
report(before=before, after=measure())
"""

MAKE = {
    "tensor": "kept = torch.ones(1000)",
    "gradients": "kept = torch.nn.Linear(100, 100); kept(torch.ones(1, 100)).sum().backward()",
    "view": "kept = torch.ones(1000)[:3]",
    "sparse": "kept = torch.ones(100).to_sparse()",
    "sparse gradients": "kept = torch.nn.Embedding(50, 8, sparse=True); kept(torch.tensor([1, 2])).sum().backward()",
    "csr": "kept = torch.eye(20).to_sparse_csr()",
    "storage": "kept = torch.ones(1000).untyped_storage()",
    "from numpy": "import numpy; kept = torch.from_numpy(numpy.ones(1000))",
    "fake": "from torch._subclasses import FakeTensorMode\nwith FakeTensorMode():\n    kept = torch.ones(1000)",
    "meta": "kept = torch.ones(1000, device='meta')",
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE.keys())
def test_what_lived_before_is_counted_as_what_was_seen(tmp_path, make):
    late = run_program(PROGRAM.format(early=False, make=make), tmp_path).values
    (tmp_path / "results.json").unlink()
    early = run_program(PROGRAM.format(early=True, make=make), tmp_path).values
    assert late["before"] - late["after"] == early["before"] - early["after"]
    if make.startswith(("kept = torch.ones(1000)", "kept = torch.nn.Linear")) and "meta" not in make:
        assert late["before"] - late["after"] > 0
