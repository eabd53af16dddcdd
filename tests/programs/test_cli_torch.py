"""Training programs under the command line, with PyTorch: on CPU tensors, on a GPU, and one that nobody here wrote."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from cli_support import python, run, without_our_lines, write
from gpu_device import REAL, gpu
from run_program import cells, titles

from pytorch_memlab_c import LineRecords

TRAINING = """
    import sys
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(256, 1024)
            self.last = nn.Linear(1024, 16)

        def forward(self, x):
            hidden = self.first(x).relu()
            return self.last(hidden)

    def train(device):
        net = Net().to(device)
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(3):
            x = torch.ones(64, 256, device=device)
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    if __name__ == "__main__":
        train(sys.argv[1])
        if sys.argv[1] != "cpu":
            print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
    """
#: On the way, the finders of the simulated GPU, of the engine and of the command line all listen to `import torch`.
NAMES = ["-p", "__main__", "-f", "nn.Linear.forward", "-f", "torch.optim.Adam.step"]

OUTPUTS = ["-o", "gpu.json", "-o", "gpu.html", "-o", "gpu.txt"]


def highest(path: Path, figure: str, device: str) -> int:
    """The highest value of a figure on a device, over all lines."""
    records = LineRecords.from_json(path)
    lines = [line for function in records.functions for line in function.lines]
    return max(getattr(line.stats[device], figure) for line in lines if device in line.stats)


def test_cpu_tensors_in_figures_that_can_be_computed(tmp_path):
    pytest.importorskip("torch")
    write(tmp_path, {"train.py": TRAINING})
    end = run(tmp_path, *NAMES, "--device", "cpu", "-o", "cpu.json", "-o", "cpu.txt", "train.py", "cpu")
    assert end.returncode == 0, end.stderr
    titled = titles((tmp_path / "cpu.txt").read_text())
    assert titled == ["<module>", "Net.__init__", "Net.forward", "train", "Linear.forward", "Adam.step"]
    records = LineRecords.from_json(tmp_path / "cpu.json")
    parameters = 4 * (256 * 1024 + 1024 + 1024 * 16 + 16)
    size = f"{parameters / 2**20:.2f}M"
    assert cells(records.to_text("train"), "net = Net().to(device)") == [size, size, "1"]
    assert cells(records.to_text("train"), "x = torch.ones(64, 256, device=device)")[1:] == [
        "0.00B",
        "3",
    ]  # it replaces the last one
    assert cells(records.to_text("Linear.forward"), "return F.linear(input, self.weight, self.bias)")[2] == "6"
    assert highest(tmp_path / "cpu.json", "allocated_peak", "cpu") > 4 * parameters  # with gradients and two moments


@gpu()
def test_the_peaks_are_those_that_the_program_reads_from_pytorch(tmp_path):
    write(tmp_path, {"train.py": TRAINING})
    command = ["run"] if REAL else ["simulate", "--gpu", "a100-40gb:2"]
    words = ["-m", "pytorch_memlab_c", *command, *NAMES, "--saved", *OUTPUTS, "train.py", "cuda"]
    end = python(tmp_path, *words)
    assert end.returncode == 0, end.stderr
    allocated, reserved = map(int, end.stdout.split())
    assert highest(tmp_path / "gpu.json", "allocated_peak", "cuda:0") == allocated
    assert highest(tmp_path / "gpu.json", "reserved_peak", "cuda:0") == reserved
    names = [function.qualname for function in LineRecords.from_json(tmp_path / "gpu.json").functions]
    assert {"train", "Net.forward", "Linear.forward", "Adam.step"} <= {*names}
    for name in OUTPUTS[1::2]:
        shown = (tmp_path / name).read_text()
        assert ("CUDA figures are simulated: 2 x Simulated NVIDIA A100" in shown) is not REAL
        assert "Saved for backward, cuda:0: " in shown or name == "gpu.json"
    records = LineRecords.from_json(tmp_path / "gpu.json")
    assert records.saved and records.to_dataframe(kind="holders").attrs["notes"] == list(records.notes)


def _source_of(module: str) -> str:
    spec: Any = importlib.util.find_spec(module)
    return Path(spec.origin).read_text(encoding="utf-8")


def test_a_training_script_that_a_package_ships_and_one_changed_line(tmp_path):
    """accelerate's own training check, as it is installed; then with one line of it changed."""
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    module = "accelerate.test_utils.scripts.test_script"
    names = ["-f", "mock_training", "-f", "training_check", "--device", "cpu"]
    outputs = ["-o", "before.json", "-o", "before.html"]
    quiet = {"PYTHONWARNINGS": "ignore"}
    before = run(tmp_path, *names, *outputs, "-m", module, **quiet)
    assert before.returncode == 0, before.stderr
    assert without_our_lines(before.stderr) == ""
    assert "Training yielded the same results on one CPU or distributed setup with batch split." in before.stdout
    page = (tmp_path / "before.html").read_text()
    assert "mock_training" in page and "model = RegressionModel()" in page

    line = '        for batch in train_dl:\n            model.zero_grad()\n            output = model(batch["x"])\n'
    source = _source_of(module)
    assert source.count(line) >= 1
    changed = source.replace(line, line.replace('batch["x"]', 'batch["x"].repeat(100)[:8]'), 1)
    (tmp_path / "test_script.py").write_text(changed)
    after = run(tmp_path, *names, "-o", "after.json", "test_script.py", **quiet)
    assert "wrote after.json" in after.stderr
    table = python(tmp_path, "-m", "pytorch_memlab_c", "diff", "before.json", "after.json").stdout.splitlines()
    assert table[3].endswith('mock_training -             output = model(batch["x"])')
    assert table[4].endswith('+             output = model(batch["x"].repeat(100)[:8])')
    assert table[3].split()[2].startswith("+")


LIBRARY = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

class Unused(Net):
    def forward(self, x):
        return x

class WrappedOptimizer:
    def step(self):
        pass

class Trainer:
    def fit(self, net):
        for _ in range(3):
            self.training_step(net)
            WrappedOptimizer().step()

    def training_step(self, net):
        net(torch.ones(4, 8)).sum().backward()
"""


def test_by_default_the_steps_of_libraries_are_profiled_and_those_of_pytorch_are_not(tmp_path):
    pytest.importorskip("torch")
    write(
        tmp_path,
        {
            "site-packages/library.py": LIBRARY,
            "train.py": "import library\nlibrary.Trainer().fit(library.Net())\n",
        },
    )
    end = run(
        tmp_path, "--device", "cpu", "-o", "report.json", "-o", "report.txt", "train.py", PYTHONPATH="site-packages"
    )
    assert end.returncode == 0, end.stderr
    found = {f.qualname: f.calls for f in LineRecords.from_json(tmp_path / "report.json").functions}
    assert found == {"<module>": 1, "Trainer.training_step": 3, "Net.forward": 3, "WrappedOptimizer.step": 3}
    assert "Unused" not in (tmp_path / "report.txt").read_text()
    end = run(
        tmp_path, "-p", "__main__", "--device", "cpu", "-o", "report.json", "train.py", PYTHONPATH="site-packages"
    )
    assert [f.qualname for f in LineRecords.from_json(tmp_path / "report.json").functions] == ["<module>"]
