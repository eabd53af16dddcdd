"""Memory that PyTorch's counters do not contain: the report says so, and claims nothing else."""

from __future__ import annotations

import subprocess

import pytest
from gpu_device import simulated
from run_program import run_program

pytestmark = simulated()
EIGHT = {"PYTORCH_MEMLAB_SIMULATE": "8GB@9.0"}
PROGRAM = """\
import torch
from pytorch_memlab_c import LineProfiler
{first}
def f():
    return torch.empty(1 << 20, device="cuda") * 2
def pin():
    return torch.empty(1 << 20).pin_memory()
with LineProfiler(f, pin, device="cuda") as profiler:
    f()
    {then}
profiler.print_stats()
"""
PLUGGABLE = """\
from torch.cuda.memory import CUDAPluggableAllocator, change_current_allocator
change_current_allocator(CUDAPluggableAllocator("./plain.so", "take", "give_back"))
"""
ALLOCATOR = """\
#include <stddef.h>
int cudaMalloc(void **, size_t);
int cudaFree(void *);
void *take(size_t size, int device, void *stream)
{
    void *pointer = NULL;
    return cudaMalloc(&pointer, size) ? NULL : pointer;
}
void give_back(void *pointer, size_t size, int device, void *stream) { cudaFree(pointer); }
"""


def notes(tmp_path, first="", then="pass", **env):
    run = run_program(PROGRAM.format(first=first, then=then), tmp_path, env={**EIGHT, **env})
    assert "nothing was allocated" not in run.stdout
    return [line for line in run.stdout.splitlines() if line.startswith("note: ") and "simulated" not in line]


def test_a_plain_run_has_no_such_note(tmp_path):
    assert notes(tmp_path) == []


def test_without_the_caching_allocator(tmp_path):
    (note,) = notes(tmp_path, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert note.startswith("note: PYTORCH_NO_CUDA_MEMORY_CACHING is set: PyTorch counts no CUDA memory then")


def test_with_an_allocator_of_the_programs_own(tmp_path):
    (tmp_path / "plain.c").write_text(ALLOCATOR)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "plain.so", "plain.c"], cwd=tmp_path, check=True)
    found = notes(tmp_path, first=PLUGGABLE)
    assert any(note.startswith("note: a CUDAPluggableAllocator is in use: PyTorch counts nothing") for note in found)


def test_with_cuda_malloc_async_what_is_counted_is_shown(tmp_path):
    run = run_program(
        PROGRAM.format(first="", then="pass"),
        tmp_path,
        env={**EIGHT, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    )
    assert "8.00M" in run.stdout and "is set" not in run.stdout and "is in use" not in run.stdout


@pytest.mark.parametrize("then", ["pin()", "kept = [pin() for _ in range(3)]"])
def test_pinned_memory(tmp_path, then):
    (note,) = notes(tmp_path, then=then)
    size = "4.00M" if then == "pin()" else "12.00M"
    assert note == f"note: pinned host memory is not counted here: {size} at most, by torch.cuda.host_memory_stats()"
