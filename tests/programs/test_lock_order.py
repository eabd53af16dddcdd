"""The engine's locks are taken in one order (docs/threads.md): a program on several threads, under an engine that
checks it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from run_program import run_program

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "c" / f"locks-{sys.implementation.cache_tag}"

PROGRAM = """
import importlib.util, os, sys, threading, time

spec = importlib.util.spec_from_file_location("pytorch_memlab_c._native", ENGINE)
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])

from pytorch_memlab_c import LineProfiler, _native, profile, simulate

assert _native.__spec__.origin == ENGINE
if GPU:
    simulate.enable("h100-80gb")
import torch
from program_support import report

device = "cuda" if GPU else "cpu"
torch.set_num_threads(1)
rounds = dict.fromkeys(("trains", "drops", "fails", "forks"), 0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)

@profile(saved=True)
def trains():
    def step(x):
        def inner(h):
            return torch.utils.checkpoint.checkpoint(net, h, use_reentrant=False)
        y = inner(x).sum()
        y.backward()
    x = torch.ones(16, 64, device=device, requires_grad=True)
    with LineProfiler(step, saved=True):
        step(x)
    if GPU:
        x.record_stream(torch.cuda.Stream())

def drops():
    def f():
        return torch.ones(1000, device=device) * 2
    profiler = LineProfiler(f, saved=True)
    with profiler:
        kept = f()
    del profiler, f
    return kept

@profile
def fails():
    try:
        torch.empty(1 << 50, device=device)
    except RuntimeError:
        pass

def forks():
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7

def work(way):
    while time.monotonic() < end:
        way()
        rounds[way.__name__ if way.__name__ in rounds else way.__wrapped__.__name__] += 1

trains()
end = time.monotonic() + SECONDS
threads = [threading.Thread(target=work, args=(way,)) for way in (trains, trains, drops, fails)]
for thread in threads: thread.start()
work(forks)
for thread in threads: thread.join()
report(rounds=rounds)
"""


@pytest.fixture(scope="module")
def engine() -> Path:
    """The extension, built so that it stops where a lock is taken out of order."""
    cmake = shutil.which("cmake", path=Path(sys.executable).parent) or shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    options = ["-DPML_CHECK_LOCKS=ON", "-DPML_SIMCUDA=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run([cmake, "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", *options], check=True)
    subprocess.run([cmake, "--build", BUILD], check=True)
    (library,) = BUILD.glob("native/_native*.so")
    return library


@pytest.mark.parametrize("gpu", [False, pytest.param(True, marks=pytest.mark.gpu)], ids=["cpu", "gpu"])
def test_locks_are_taken_in_one_order(engine, tmp_path, gpu):
    torch = pytest.importorskip("torch")
    if gpu and not torch.version.cuda:
        pytest.skip("the CUDA build of PyTorch is not installed")
    settings = f"ENGINE = {str(engine)!r}\nGPU = {gpu}\nSECONDS = 6\n"
    run = run_program(settings + PROGRAM, tmp_path, env={"PYTHONWARNINGS": "ignore::DeprecationWarning"})
    assert all(count > 3 for count in run.values["rounds"].values()), run.values["rounds"]
