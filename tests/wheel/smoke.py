"""Tries an installed package without PyTorch: run in a clean environment, outside the source tree."""

from __future__ import annotations

import ctypes
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytorch_memlab_c
from pytorch_memlab_c import LineProfiler, _native, measure_peak_rss

FOLDER = Path(pytorch_memlab_c.__file__).parent
COMMAND = Path(sys.executable).with_name("pytorch-memlab")
PROGRAM = """
from pytorch_memlab_c import _native

def keep():
    _native.inject_event(0, 3072)
    _native.inject_event(0, -1024)

keep()
"""


def work() -> None:
    _native.inject_event(0, 4096)
    _native.inject_event(0, -4096)


def output(*command: object, **environment: str) -> str:
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def check_installation() -> None:
    assert Path(sys.prefix) in FOLDER.parents, FOLDER
    assert importlib.util.find_spec("torch") is None
    installed = metadata.distribution("pytorch-memlab-c")
    assert installed.metadata["License-Expression"] == "MIT"
    assert any(str(path).endswith("licenses/LICENSE") for path in installed.files or ())


def check_profile() -> None:
    with LineProfiler(work, device="cpu") as profiler:
        work()
    text = io.StringIO()
    profiler.print_stats(stream=text)
    rows = [line.split() for line in text.getvalue().splitlines() if "inject_event(0, 4096)" in line]
    assert len(rows) == 1 and "4.00K" in rows[0], text.getvalue()


def check_command() -> None:
    assert "run" in output(COMMAND, "--help")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(PROGRAM)
        table = output(COMMAND, "run", "-f", "keep", program)
    assert "## keep" in table and "3.00K" in table, table


def check_native_files() -> None:
    """The program that starts children, and the libraries of the simulated GPU, found from one another."""
    assert os.access(FOLDER / "pml_starter", os.X_OK)
    assert measure_peak_rss([sys.executable, "-c", "x = b'x' * 2**25"])["value"] > 2**25
    for name, function in (("libcuda.so.1", "cuInit"), ("libnvidia-ml.so.1", "nvmlInit_v2")):
        assert getattr(ctypes.CDLL(str(FOLDER / "simulated_driver" / name)), function)
    output(sys.executable, "-c", "pass", PYTORCH_MEMLAB_SIMULATE="h100-80gb")


if __name__ == "__main__":
    check_installation()
    check_profile()
    check_command()
    check_native_files()
    print("It works")
