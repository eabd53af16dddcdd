"""Who holds the peak on a CUDA GPU, against PyTorch's own memory history; and allocations that fail there."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from gpu_device import REAL, environment, gpu
from run_program import SUPPORT, run_program

from pytorch_memlab_c import LineRecords

ROOT = Path(__file__).parents[2]


def run(source: str, directory: Path, **env: str) -> Any:
    paths = f"{SUPPORT}:{ROOT / 'examples'}"
    return run_program(source, directory, env={**environment(), "PYTHONPATH": paths, **env})


STEP = """
import torch, train_transformer as example
from holders_account import History, Lines, told
from program_support import report
from pytorch_memlab_c import LineProfiler, clear_global_line_profiler
from pytorch_memlab_c.line_profiler import decorators

model, optimizer, tokens = example.build("cuda")
plain = [f.__wrapped__ for f in (example.train_step, example.Block.forward, example.Transformer.forward)]

def measure(step, profiler):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    history = History()
    history.start()
    if profiler:
        with profiler:
            step(model, optimizer, tokens)
    else:
        clear_global_line_profiler()
        step(model, optimizer, tokens)
    counter = torch.cuda.max_memory_allocated()
    history.stop()
    account = history.account(0, Lines(plain).of)
    records = profiler.records().holders if profiler else decorators._book.records()
    (peak,) = [peak for peak in records.peaks if peak.device == "cuda:0"]
    return [peak.peak, account.peak, counter, told(peak) == account.holders, len(account.holders), account.blocks,
            str(told(peak)), str(account.holders)]
"""


@gpu()
def test_every_byte_of_a_training_steps_peak_is_where_pytorchs_history_has_it(tmp_path):
    program = """
        report(decorated=measure(example.train_step, None))
        report(fine=measure(plain[0], LineProfiler(*plain, device="cuda:0")))
        report(coarse=measure(plain[0], LineProfiler(plain[0], device="cuda:0")))
    """
    values = run(STEP + textwrap.dedent(program), tmp_path).values
    for way in ("decorated", "fine"):
        peak, account, counter, same, lines, blocks, held, expected = values[way]
        assert peak == account == counter, way
        assert same, f"{way}:\n{held}\n{expected}"
        assert lines >= 8 and blocks > 60
    assert values["coarse"][:3] == [values["fine"][0]] * 3  # other lines, the same moment
    assert not values["coarse"][3]


@pytest.mark.skipif(REAL, reason="needs two devices of its own")
@gpu(devices=2)
def test_random_programs_hold_what_pytorchs_history_says():
    """With `record_stream`, generators, recursion, exceptions and two devices."""
    command = [sys.executable, str(SUPPORT / "agreement_holders.py"), "1", "8"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("8 programs agree\n")


OUT_OF_MEMORY = """
import threading, torch
from program_support import report
from pytorch_memlab_c import LineProfiler

GB = 1 << 30

def fill(n):
    keep = torch.empty(10 * GB, dtype=torch.uint8, device="cuda")
    batch = torch.empty(n, dtype=torch.uint8, device="cuda")
    return keep, batch

def search():
    n, errors = 64 * GB, []
    while True:
        try:
            fill(n)
            return n, errors
        except torch.OutOfMemoryError as error:
            errors.append((type(error).__name__, str(error)))
            n //= 2

def told(profiler):
    return [[f.asked, f.allocated, f.reserved, f.unused, f.total, f.at.code, [h.bytes for h in f.holders]]
            for f in profiler.records().holders.out_of_memory]
"""


@pytest.mark.skipif(REAL, reason="the figures are those of the simulated GPU")
@gpu()
def test_each_try_of_a_batch_size_search_is_told_with_what_there_was(tmp_path):
    program = """
plain = search()
torch.cuda.empty_cache()
with LineProfiler(search, fill, device="cuda:0") as profiler:
    profiled = search()
torch.cuda.empty_cache()
assert plain == profiled, (plain, profiled)
report(told=told(profiler), total=torch.cuda.get_device_properties(0).total_memory, messages=plain[1])
profiler.print_stats()

def backward():
    x = torch.empty(14 * GB // 4, device="cuda", requires_grad=True)
    y = x * 2
    y.sum().backward()

def fragmented():
    torch.empty(36 * GB, dtype=torch.uint8, device="cuda")  # a segment, which the next ones share
    blocks = [torch.empty(512 << 20, dtype=torch.uint8, device="cuda") for _ in range(72)]
    del blocks[::2]
    torch.empty(4 * GB, dtype=torch.uint8, device="cuda")

def limited():
    torch.cuda.set_per_process_memory_fraction(0.5)
    torch.empty(21 * GB, dtype=torch.uint8, device="cuda")

def failing(function):
    torch.cuda.empty_cache()
    with LineProfiler(function, device="cuda:0") as profiler:
        try:
            function()
        except torch.OutOfMemoryError:
            pass
    torch.cuda.set_per_process_memory_fraction(1.0)
    print(profiler.records().to_text())
    (failure,) = profiler.records().holders.out_of_memory
    return [failure.at.kind, failure.at.code, failure.asked]

report(backward=failing(backward), fragmented=failing(fragmented), limited=failing(limited))

def cpu():
    small = torch.ones(1000)
    torch.empty(1 << 60, dtype=torch.uint8)

with LineProfiler(cpu, device="cpu") as on_cpu:
    try:
        cpu()
    except RuntimeError as error:
        message = str(error)
(failure,) = on_cpu.records().holders.out_of_memory
report(cpu=[failure.device, failure.asked, failure.at.code, sum(h.bytes for h in failure.holders), failure.active],
       message=message)
"""
    run_ = run(OUT_OF_MEMORY + program, tmp_path)
    values = run_.values
    told = values["told"]
    giga = 1 << 30
    assert [entry[0] for entry in told] == [64 * giga, 32 * giga]
    for _, allocated, reserved, unused, total, code, holders in told:
        assert code == 'batch = torch.empty(n, dtype=torch.uint8, device="cuda")'
        assert allocated == sum(holders) and holders[0] == 10 * giga and total == values["total"]
        assert reserved + unused == total
    assert len(values["messages"]) == 2 and "Tried to allocate 64.00 GiB" in values["messages"][0][1]
    assert run_.stdout.count("Out of memory on cuda:0 at program.py:") == 5
    assert values["backward"] == ["backward", "y.sum().backward()", 14 * giga]
    assert values["fragmented"][2] == 4 * giga
    assert "fragmentation: 18.00G (50.0% of reserved) were not allocated" in run_.stdout
    assert values["limited"][2] == 21 * giga
    assert "the device had room for it" in run_.stdout
    assert values["cpu"][:3] == ["cpu", 1 << 60, "torch.empty(1 << 60, dtype=torch.uint8)"]
    assert values["cpu"][3] == values["cpu"][4] >= 4000
    assert "DefaultCPUAllocator" in values["message"]


BACKWARD = """
import threading, torch
from program_support import report
from pytorch_memlab_c import LineProfiler, profile
from pytorch_memlab_c.line_profiler import decorators

def kinds(profiler):
    (peak,) = [peak for peak in profiler.records().holders.peaks if peak.device == "cuda:0"]
    return {holder.kind: holder.bytes for holder in peak.holders if holder.kind != "line"}

def backward(x):
    y = (x * 2).exp()
    y.sum().backward()
    return x.grad

def wait(ready, done):
    ready.wait()
    done.wait()

x = torch.ones(1 << 20, device="cuda", requires_grad=True)
with LineProfiler(backward, device="cuda:0") as alone:
    backward(x)
ready, done = threading.Barrier(2), threading.Event()
x.grad = None
with LineProfiler(backward, wait, device="cuda:0") as several:
    other = threading.Thread(target=wait, args=(ready, done))
    other.start()
    ready.wait()
    backward(x)
    done.set()
    other.join()

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return in_python(gradient)

@profile
def in_python(gradient):
    return gradient * 2

x.grad = None
Twice.apply(x).sum().backward()
own = [h.code for h in decorators._book.records().peaks[-1].holders]
report(alone=kinds(alone), several=kinds(several), own=own)
print(several.records().to_text())
"""


@gpu()
def test_what_autograds_threads_allocate_is_the_waiting_lines_or_nobodys(tmp_path):
    ran = run(BACKWARD, tmp_path)
    assert set(ran.values["alone"]) - {"elsewhere"} == {"backward"}
    assert set(ran.values["several"]) - {"elsewhere"} == {"autograd"}
    assert "autograd, while several threads ran profiled functions" in ran.stdout
    assert "return gradient * 2" in ran.values["own"]


@gpu()
def test_without_events_holders_are_unavailable(tmp_path):
    program = """
import torch
from pytorch_memlab_c import LineProfiler

def f():
    return torch.empty(1 << 20, device="cuda")

with LineProfiler(f) as profiler:
    f()
profiler.print_stats()
assert not [peak for peak in profiler.records().holders.peaks if peak.device != "cpu"]
"""
    out = run(program, tmp_path, PYTORCH_MEMLAB_SAMPLER="statistics").stdout
    assert "who holds the peak of a CUDA device, and which lines keep more on every run, is unavailable" in out
    assert "Peak of cuda" not in out


# ---- a 7-billion-parameter Llama ----

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@needs_transformers
@pytest.mark.skipif(REAL, reason="simulates its own GPU")
@gpu()
@pytest.mark.parametrize(
    "memory, file, code",
    [
        ("24 GB", "modeling_llama.py", None),
        ("48 GB", "llama_oom.py", "optimizer.step()"),
    ],
)
def test_the_line_of_a_llama_that_runs_out_of_memory(tmp_path, memory, file, code):
    path = tmp_path / "report.json"
    measured = (
        "import resource, sys, llama_oom\n"
        f"sys.argv = ['llama_oom.py', {memory!r}, '--json', {str(path)!r}]\n"
        "llama_oom.main()\n"
        "from program_support import report\n"
        "report(rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    ran = run(measured, tmp_path, PYTORCH_MEMLAB_SIMULATE="")
    assert ran.values["rss"] < 8 << 20  # kibibytes
    (failure,) = LineRecords.from_json(path).holders.out_of_memory
    assert Path(failure.at.filename or "").name == file
    assert failure.at.code == code or code is None
    weights = [holder for holder in failure.holders if holder.code == "model = LlamaForCausalLM(config)"]
    assert weights[0].bytes > 12 << 30 and weights[0] in failure.holders[:3]
    assert len([holder for holder in failure.holders if holder.kind in ("line", "backward")]) >= 3
    assert sum(holder.bytes for holder in failure.holders) == failure.active
    assert f"Out of memory on cuda:0 at {file}:" in ran.stdout
