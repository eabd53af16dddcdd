"""Snapshots that PyTorch makes, on the simulated GPU, beside PyTorch's own counters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import environment, python
from gpu_device import REAL, gpu
from random_allocations import __file__ as PROGRAMS

from pytorch_memlab_c.snapshot import Snapshot

pytestmark = pytest.mark.skipif(REAL, reason="these programs are of the simulated GPU")
PROLOGUE = """
import ctypes, json, os, pickle, sys
from pytorch_memlab_c import simulate
simulate.enable("h100-80gb", count=2)
import torch
from random_allocations import KINDS, replayed

def check(snapshot, device=0):
    stats = torch.cuda.memory_stats(device)
    got, state = replayed(snapshot)
    wanted = {f"{kind}_{which}": stats[f"{kind}_bytes.all.{which}"] for kind in KINDS for which in ("current", "peak")}
    assert got == wanted, (got, wanted)
    assert not state["lost"] and not state["unequal"] and not state["guessed"], state

def record(**options):
    torch.cuda.memory._record_memory_history(**options)
"""


def run(source: str, folder: Path, **env: str) -> str:
    """What a program prints on standard output."""
    code = PROLOGUE + source
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def programs(settings: str) -> dict[str, Any]:
    words = [sys.executable, "-W", "ignore", PROGRAMS, "1", "100", *([settings] if settings else [])]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@gpu()
@pytest.mark.parametrize("settings", ["max_split_size_mb:30", "roundup_power2_divisions:4"])
def test_levels_of_random_programs_are_pytorchs_counters(settings: str) -> None:
    assert programs(settings)["differences"] == []


@gpu()
def test_levels_and_what_expandable_segments_would_reserve() -> None:
    """The programs once more, with them: the same levels, and the reserved bytes that were worked out without them."""
    plain, expandable = programs(""), programs("expandable_segments:True")
    assert plain["differences"] == expandable["differences"] == []
    assert len(plain["reserved"]) >= 4
    assert {seed: values[1] for seed, values in plain["reserved"].items()} == {
        seed: values[0] for seed, values in expandable["reserved"].items()
    }
    assert any(values[0] > values[1] for values in plain["reserved"].values())


KINDS_OF_MEMORY = """
record(stacks=STACKS, record_pinned_host_memory=True)
x = torch.empty(1_000_000, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
    z = torch.empty(3_000_000, device="cuda") + 1
    del y
    q = torch.empty(5000, device="cuda")
check(torch.cuda.memory._snapshot())
pool = torch.cuda.MemPool(no_split=True)
with torch.cuda.use_mem_pool(pool):
    a = torch.empty(1000, device="cuda")
    b = torch.empty(3_000_000, device="cuda")
    del b
    c = torch.empty(2_000_000, device="cuda")
    d = torch.empty(100, device="cuda")
    del a
side = torch.cuda.Stream()
x.record_stream(side)
del x
pinned = torch.empty(100_000, pin_memory=True)
other = torch.empty(1000, device="cuda:1")
check(torch.cuda.memory._snapshot())
del c, pinned
check(torch.cuda.memory._snapshot())
"""


@gpu()
@pytest.mark.parametrize("stacks", ["python", "all"])
def test_private_pools_graphs_streams_and_pinned_memory(tmp_path: Path, stacks: str) -> None:
    more = """
from pytorch_memlab_c.snapshot import Snapshot
snapshot = Snapshot.from_object(torch.cuda.memory._snapshot())
print(*[device.name for device in snapshot.devices], sep=",")
print(snapshot.to_text(("end",)))
"""
    text = run(KINDS_OF_MEMORY.replace("STACKS", repr(stacks)) + more, tmp_path)
    assert text.splitlines()[0] == "cuda:0,cuda:1,host (pinned)"
    assert "private" in text and "note: the replay" not in text and "does not know" not in text


@gpu()
def test_pytorchs_own_pickler_writes_the_same(tmp_path: Path) -> None:
    """`torch::cuda::_memory_snapshot_pickled()`, what C++ writes: other opcodes, and lists in one piece."""
    run(
        """
library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cuda.so"))
pickled = library["_ZN5torch4cuda24_memory_snapshot_pickledB5cxx11Ev"]
record(stacks="python")
kept = [torch.empty(1000 * i, device="cuda") for i in range(1, 3000)]
del kept[::2]
text = (ctypes.c_uint64 * 4)()
pickled.argtypes, pickled.restype = [ctypes.c_void_p], None
pickled(ctypes.addressof(text))
data = ctypes.string_at(text[0], text[1])
from pytorch_memlab_c.snapshot import Snapshot
import io
of_cpp = Snapshot(io.BytesIO(data).readinto, "cpp").devices[0]
of_python = Snapshot.from_object(torch.cuda.memory._snapshot()).devices[0]
count = len(of_cpp.events)
assert count > 4000 and (of_python.events["address"][:count] == of_cpp.events["address"]).all(), count
assert of_cpp.peaks["active"] == of_python.peaks["active"]
assert (of_cpp.allocations["size"] == of_python.allocations["size"]).all()
check(pickle.loads(data))
""",
        tmp_path,
    )


@gpu()
@pytest.mark.parametrize("kept", [1, 50, 400])
def test_a_ring_of_any_size_ends_at_pytorchs_levels(tmp_path: Path, kept: int) -> None:
    run(
        f"""
record(max_entries={kept}, stacks="python")
import random
from random_allocations import Program
program = Program(3)
program.run(500)
snapshot = torch.cuda.memory._snapshot()
assert len(snapshot["device_traces"][0]) == {kept}
got, state = replayed(snapshot)
stats = torch.cuda.memory_stats()
assert [got[f"{{kind}}_current"] for kind in KINDS] == [stats[f"{{kind}}_bytes.all.current"] for kind in KINDS]
assert not state["lost"] and not state["unequal"]
""",
        tmp_path,
    )


@gpu()
def test_state_alone_and_no_recording_at_all(tmp_path: Path) -> None:
    run(
        """
def check_levels():
    got, stats = replayed(torch.cuda.memory._snapshot())[0], torch.cuda.memory_stats()
    for kind in KINDS:
        assert got[f"{kind}_current"] == stats[f"{kind}_bytes.all.current"] > 0, (kind, got, stats)

kept = torch.empty(5_000_000, device="cuda")
check_levels()
record(enabled="state", stacks="python")
more = torch.empty(7_000_000, device="cuda")
check_levels()
""",
        tmp_path,
    )


RUNS_OUT = """
import torch

kept = []

def remember(batch):
    kept.append(batch * 2)

def train():
    while True:
        remember(torch.empty(4096, 4096, device="cuda"))

try:
    train()
except torch.OutOfMemoryError:
    kept.clear()
last = torch.empty(1000, device="cuda")
"""


@gpu()
def test_run_writes_one_beside_the_report_and_one_when_memory_runs_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RUNS_OUT)
    words = [
        "simulate",
        "--gpu",
        "24GB@8.9",
        "--snapshot",
        "out.pickle.gz",
        "--snapshot-entries",
        "5000",
        "-o",
        "a.json",
    ]
    done = python(tmp_path, *words, "train.py", command=["-W", "ignore", "-m", "pytorch_memlab_c"])
    assert done.returncode == 0, done.stderr
    assert "recording up to 5,000 events a device: 5 MB of memory when all are used" in done.stderr
    assert "out.pickle.gz, the memory at the end: " in done.stderr
    out = Snapshot.load(tmp_path / "out.oom.pickle.gz").report().devices[0].moments[1]
    assert out.kind == "oom" and out.asked == 64 << 20 and out.at.function == "remember"
    assert out.holders[0].place.line == 7 and out.holders[0].bytes > 23 << 30
    end = Snapshot.load(tmp_path / "out.pickle.gz").report().devices[0]
    assert end.failures == 1 and end.end.active == 4096
    assert json.loads((tmp_path / "a.json").read_text())["tool"] == "pytorch_memlab_c"


@gpu()
def test_the_example_of_the_page_is_found_as_the_page_says(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    words = ["simulate", "--gpu", "a100-40gb", "--snapshot", "job.pickle", "-o", "a.json"]
    example = str(root / "examples" / "leaky_training.py")
    python(tmp_path, *words, example, command=["-W", "ignore", "-m", "pytorch_memlab_c"])
    report = python(tmp_path, "snapshot", "job.oom.pickle", command=["-m", "pytorch_memlab_c"]).stdout
    page = (root / "docs" / "snapshots.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if "leaky_training.py:" in line and " a second)" not in line]
    assert len(shown) == 7
    for line in shown:
        assert line in report, line
    assert "28.08G more (250.00M each time" in report and "28.08G more (250.00M each time" in page


LLAMA = """
import json, torch
from pytorch_memlab_c import LineProfiler
from pytorch_memlab_c.snapshot import Snapshot
from transformers import LlamaConfig, LlamaForCausalLM

def build():
    config = LlamaConfig(num_hidden_layers=32, use_cache=False)
    with torch.device("cuda"):
        return LlamaForCausalLM(config).to(torch.bfloat16)

def step(model, tokens):
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    return loss

def main():
    model = build()
    tokens = torch.zeros(1, 128, dtype=torch.long, device="cuda")
    return step(model, tokens), model

torch.set_default_dtype(torch.bfloat16)
record(stacks="python", max_entries=1_000_000)
with LineProfiler(main, build, step) as profiler:
    result = main()
snapshot = Snapshot.from_object(torch.cuda.memory._snapshot())
(peak,) = [peak for peak in profiler.records().holders.peaks if peak.device == "cuda:0"]
of_lines = {}
for holder in peak.holders:
    key = holder.line if holder.kind == "line" else "backward"
    of_lines[key] = of_lines.get(key, 0) + holder.bytes
of_snapshot = {}
for held in snapshot.report(("peak",)).devices[0].moments[0].holders:
    key = held.place.line if held.place.kind == "line" else "backward"
    of_snapshot[key] = of_snapshot.get(key, 0) + held.bytes
assert of_lines == of_snapshot, (of_lines, of_snapshot)
print(json.dumps([peak.peak, len(of_lines)]))
"""


@gpu()
def test_a_step_of_a_7b_llama_has_the_holders_of_the_line_profiler(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    (tmp_path / "llama.py").write_text(PROLOGUE + LLAMA)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "llama.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    peak, lines = json.loads(done.stdout.splitlines()[-1])
    assert peak > 20 << 30 and lines >= 3
