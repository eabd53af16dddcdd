"""demo.ipynb runs as it is, without a GPU, and its outputs are those that the file shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

for needed in ("torch", "nbclient", "ipykernel"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

import gpu_device  # noqa: E402
import nbformat  # noqa: E402
import torch  # noqa: E402
from run_notebook import is_log, run, text_of  # noqa: E402
from run_program import cells as values  # noqa: E402
from run_program import titles  # noqa: E402

DEMO = Path(__file__).parents[2] / "demo.ipynb"
pytestmark = [
    pytest.mark.simcuda,
    pytest.mark.skipif(gpu_device._reason_to_skip() is not None, reason=gpu_device._reason_to_skip() or ""),
]


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any) -> str:
    return text_of([output for output in cell.outputs if not is_log(output)])


@pytest.fixture(scope="module")
def fresh() -> Iterator[list[Any]]:
    """Its code cells, run in a fresh kernel: any error in one fails the tests."""
    yield code_cells(run(nbformat.read(DEMO, as_version=4)))


def find(cells: list[Any], source: str) -> str:
    (text,) = [shown(cell) for cell in cells if cell.source.startswith(source)]
    return text


def test_peak_of_the_table_is_that_of_torch(fresh: list[Any]) -> None:
    ours, torchs = re.findall(r"\d+", find(fresh, "peak = int"))
    assert ours == torchs and int(ours) > 4 * (1000 * 1001 + 4000 * 4001 + 100 * 1024 * 1024)


def test_table_of_a_cell_and_of_its_functions(fresh: list[Any]) -> None:
    text = find(fresh, "%%mlrun\nclass Net")
    assert [title.split("[")[0] for title in titles(text)] == ["Cell In", "Net.__init__", "Net.forward"]
    assert text.endswith("torch.Size([])\n")
    assert values(text.partition("## Net.forward")[2], "h = F.gelu(h)")[2] == "32.00M"
    assert values(find(fresh, "with torch.no_grad()"), "h = F.gelu(h)")[2] == "0.00B"


def test_first_step_is_told_from_the_later_ones(fresh: list[Any]) -> None:
    _, first, last, hits = values(find(fresh, "%%mlrun -f train_step"), "optimizer.step()")
    assert (first, last, hits) == ("64.04M", "0.00B", "5")  # two states for each of 8,393,728 parameters


def test_each_device_has_its_table(fresh: list[Any]) -> None:
    text = find(fresh, "%%mlrun -g all")
    assert [title.split()[-1] for title in titles(text)] == ["[cuda:0]", "[cuda:1]", "[cpu]"]
    assert "device: cpu" in find(fresh, "%%mlrun -g cpu")


def test_line_that_runs_out_of_memory_is_the_last_that_ran(fresh: list[Any]) -> None:
    text = find(fresh, "%%mlrun -f attention")
    assert text.startswith("CUDA out of memory")
    assert values(text, "scores = q @ k.transpose(-1, -2)")[2:] == ["32.00G", "1"]
    assert values(text, "weights = scores.softmax(-1)")[2:] == ["0.00B", "1"]
    assert values(text, "return weights") == ["0"]


def test_outputs_in_the_file_are_those_of_a_fresh_run(fresh: list[Any]) -> None:
    kept = code_cells(nbformat.read(DEMO, as_version=4))
    assert [cell.execution_count for cell in kept] == list(range(1, len(kept) + 1))
    if not torch.__version__.startswith("2.14."):
        pytest.skip("the figures in the file are those of PyTorch 2.14")
    for old, new in zip(kept, fresh, strict=True):
        if "changes" not in old.metadata.get("tags", ()):
            assert shown(old) == shown(new), f"{old.source}\n\nhas other outputs now; `make notebook` keeps them"


def test_file_holds_nothing_of_the_machine_it_ran_on() -> None:
    text = DEMO.read_text(encoding="utf-8")
    assert not re.findall(r"/(?:home|root|tmp|work|usr|opt)/|ipykernel_|site-packages|\"timestamp", text)
    assert nbformat.validate(nbformat.reads(text, as_version=4)) is None
