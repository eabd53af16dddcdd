"""Runs the demo's training step on the real GPU and on a simulated one of the same size, and compares line by line.

Usage: python tests/gpu/compare_demo.py [real.json simulated.json]     (the two files are kept if named)
Exit code 1 if an active peak or a net differs. Reserved bytes are shown, and may differ where libraries take memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
COLUMNS = ("active_bytes.all.peak", "net", "reserved_bytes.all.peak")


def measure(path: str) -> None:
    """Profile two steps on `cuda:0` of this process, whatever it is, and write the figures to `path`."""
    sys.path.insert(0, str(ROOT / "examples"))
    import train_transformer as example

    from pytorch_memlab_c import LineProfiler
    from pytorch_memlab_c.line_profiler import decorators

    decorators._profilers.clear()  # the demo's own tables are not wanted
    functions = [example.train_step, example.Transformer.forward, example.Block.forward]
    parts = example.build("cuda")
    with LineProfiler(*functions, device="cuda:0", columns=()) as profiler:
        for _ in range(2):
            example.train_step.__wrapped__(*parts)
    profiler.to_json(path)


def simulation_of_this_gpu() -> str:
    import torch

    properties = torch.cuda.get_device_properties(0)
    return f"{properties.total_memory / 2**20}MiB@{properties.major}.{properties.minor}"


def run(path: str, simulated: str | None) -> None:
    environment = dict(os.environ)
    environment.pop("PYTORCH_MEMLAB_SIMULATE", None)
    if simulated:
        environment["PYTORCH_MEMLAB_SIMULATE"] = simulated
    subprocess.run([sys.executable, __file__, "--measure", path], env=environment, check=True)


def compare(real: str, simulated: str) -> int:
    """Print both side by side; how many lines differ in active peak or net."""
    from pytorch_memlab_c import LineRecords

    frames = [LineRecords.from_json(path).to_dataframe(columns=COLUMNS) for path in (real, simulated)]
    different = 0
    print(
        f"{'active peak, real':>20} {'simulated':>14} {'net, real':>14} {'simulated':>14} "
        f"{'reserved, real':>15} {'simulated':>14}"
    )
    for (place, a), (_, b) in zip(frames[0].iterrows(), frames[1].iterrows()):
        values = [(a[column], b[column]) for column in COLUMNS]
        if any(one is None or one != one for one, _ in values):
            continue
        wrong = any(one != other for one, other in values[:2])
        different += wrong
        numbers = " ".join(f"{one:>14} {other:>14}" for one, other in values)
        print(f"{'DIFFERS' if wrong else '':8}{numbers}  {place[0]}:{place[1]} {a['code'].strip()[:60]}")
    print(f"{different} lines differ in active peak or net")
    return different


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--measure"]:
        measure(arguments[1])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        real, simulated = arguments or [f"{folder}/real.json", f"{folder}/simulated.json"]
        run(real, None)
        run(simulated, simulation_of_this_gpu())
        return 1 if compare(real, simulated) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
