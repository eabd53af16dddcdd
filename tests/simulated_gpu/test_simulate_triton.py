"""Kernels that Triton compiles are launched on the simulated GPU, and allocate what they allocate on hardware.

They need a C compiler, as Triton does on hardware: it links its launcher to the driver's library.
"""

from __future__ import annotations

import importlib.util
import shutil

import pytest
import simulated_gpu_process as processes

pytestmark = [
    pytest.mark.simcuda,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
    pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="Triton needs a C compiler"),
]

_ENABLE = """
from pytorch_memlab_c import simulate
simulate.enable("h100-80gb")
import torch
"""


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    """Empty caches: launcher and kernels are built against the simulated driver."""
    folder = tmp_path_factory.mktemp("compiled")
    return {
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def _run(tmp_path, caches, code):
    # Triton reads a kernel's source text: it must be in a file.
    program = tmp_path / "program.py"
    program.write_text(_ENABLE + code)
    return processes.fresh(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')", **caches).stdout


def test_bmm_with_inner_size_1(tmp_path, caches):
    """PyTorch has a Triton kernel for outer products: 4 * 8 * 8 * 4 bytes beside the two inputs of 512."""
    code = """
a = torch.ones(4, 8, 1, device="cuda")
b = torch.ones(4, 1, 8, device="cuda")
print(tuple(torch.bmm(a, b).shape), torch.cuda.max_memory_allocated())
"""
    assert _run(tmp_path, caches, code) == "(4, 8, 8) 2048\n"


def test_users_kernel_and_its_capture_in_a_graph(tmp_path, caches):
    code = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

x = torch.ones(1 << 20, device="cuda")
out = torch.empty_like(x)
add[(1024,)](x, x, out, x.numel(), BLOCK=1024)
graph = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(graph):
    add[(1024,)](x, x, out, x.numel(), BLOCK=1024)
graph.replay()
print(torch.cuda.memory_allocated())
"""
    assert _run(tmp_path, caches, code) == f"{2 * (4 << 20)}\n"


def test_compiled_model_trains(tmp_path, caches):
    """Inductor fuses the activation: it keeps the product of the first layer, and no second tensor of that size."""
    code = """
model = torch.nn.Sequential(torch.nn.Linear(256, 1 << 14), torch.nn.GELU(), torch.nn.Linear(1 << 14, 8)).cuda()
compiled = torch.compile(model)
inputs = torch.randn(1024, 256, device="cuda")
before = torch.cuda.memory_allocated()
loss = compiled(inputs).sum()
kept = torch.cuda.memory_allocated() - before
loss.backward()
sizes = [p.grad.shape == p.shape for p in model.parameters()]
print(all(sizes), kept)
"""
    all_there, kept = _run(tmp_path, caches, code).split()
    assert all_there == "True"
    assert int(kept) > 0


def test_inductor_gets_a_cache_of_its_own(tmp_path):
    code = """
import os, sys
sys.path.insert(0, '')
from pytorch_memlab_c import simulate
simulate.enable("h100-80gb")
print(os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["TRITON_LIBCUDA_PATH"])
import subprocess
print(subprocess.run([sys.executable, "-c", "from pytorch_memlab_c import simulate; simulate.enable('h100-80gb');"
    "import os; print(os.environ['TORCHINDUCTOR_CACHE_DIR'])"], capture_output=True, text=True).stdout)
"""
    chosen = str(tmp_path / "cache")
    changes = {"TORCHINDUCTOR_CACHE_DIR": chosen, "TRITON_LIBCUDA_PATH": "/opt/driver"}
    assert processes.fresh(code, **changes).stdout.split() == [
        f"{chosen}/simulated",
        "/opt/driver",
        f"{chosen}/simulated",
    ]
