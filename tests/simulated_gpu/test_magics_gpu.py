"""`%mlrun` on CUDA devices: figures beside PyTorch's own counters, `-g`, and targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

for needed in ("torch", "nbclient", "ipykernel"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

from gpu_device import environment, gpu  # noqa: E402
from run_notebook import run_cells, text_of  # noqa: E402
from run_program import cells as values  # noqa: E402
from run_program import run_program, titles  # noqa: E402

CELLS = {
    # The target is chosen before PyTorch is there.
    "early": """%load_ext pytorch_memlab_c
%mlrun -g 1 -D -c active_bytes.all.peak import torch; early = torch.empty(1024, device="cuda:1")""",
    "peak": """%%mlrun -c allocated_bytes.all.allocated
def step(size):
    x = torch.empty(size, dtype=torch.uint8, device="cuda")
    y = torch.empty(3 * size, dtype=torch.uint8, device="cuda")
    del y
    return x
held = step(4 << 20)
more = step(8 << 20)
torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated()""",
    "second": "%mlrun -f step -g cuda:1 step(1 << 20)",
    "target": "from pytorch_memlab_c.engine.target_device import target_name\ntarget_name()",
    "all": """%%mlrun -g all
first = torch.empty(1 << 20, dtype=torch.uint8, device="cuda:0")
other = torch.empty(2 << 20, dtype=torch.uint8, device="cuda:1")
host = torch.empty(4096, dtype=torch.uint8)""",
    "absent": "%mlrun -g 30 step(1)",
    "statistics": "%mlrun -D -c num_alloc_retries -c allocation.large_pool.allocated -f step held = step(4 << 20)",
    "failing": "%mlrun step(1 << 50)",
}


@pytest.fixture(scope="module")
def outputs() -> Iterator[dict[str, Any]]:
    yield dict(zip(CELLS, run_cells(*CELLS.values(), env=environment())))


@gpu(devices=2)
def test_target_may_be_chosen_before_torch_is_imported(outputs: dict[str, Any]) -> None:
    text = text_of(outputs["early"])
    assert "device: cuda:1" in text and "4.00K    1" in text


@gpu(devices=2)
def test_figures_are_those_of_torch(outputs: dict[str, Any]) -> None:
    table, result = outputs["peak"]
    text = table.data["text/plain"]
    peak, reserved, left = (f"{size / 2**20:.2f}M" for size in eval(result.data["text/plain"]))
    assert (peak, left) == ("36.00M", "12.00M")
    assert values(text, "more = step(8 << 20)") == [peak, reserved, "8.00M", "1", "32.00M"]
    assert values(text, "held = step(4 << 20)")[0] == "16.00M"


@gpu(devices=2)
def test_another_device_is_shown_and_the_target_is_as_before(outputs: dict[str, Any]) -> None:
    text = text_of(outputs["second"])
    assert "step: no allocation was counted on cuda:1 while it ran; cuda:0 had some" in text
    assert text_of(outputs["target"]) == "'cuda:0'\n"
    assert "cuda:30 is not there; this process has cuda:0" in text_of(outputs["absent"])


@gpu(devices=2)
def test_every_device_that_allocated_has_its_table(outputs: dict[str, Any]) -> None:
    text = text_of(outputs["all"])
    devices = [title.partition("  ")[2] for title in titles(text)]
    assert devices == ["[cuda:0]", "[cuda:1]", "[cpu]"]


@gpu(devices=2)
def test_columns_that_need_statistics_are_recorded(outputs: dict[str, Any]) -> None:
    text = text_of(outputs["statistics"])
    assert values(text, 'x = torch.empty(size, dtype=torch.uint8, device="cuda")') == ["0", "1"]


@gpu(devices=2)
def test_out_of_memory_points_into_the_cell(outputs: dict[str, Any]) -> None:
    table, error = outputs["failing"]
    assert error.ename == "OutOfMemoryError"
    assert "x = torch.empty(size" in "\n".join(error.traceback) or "step(1 << 50)" in "\n".join(error.traceback)


@gpu(devices=2)
def test_target_set_in_a_script_before_torch_is_imported(tmp_path: Any) -> None:
    run = run_program(
        """
        from pytorch_memlab_c import LineProfiler, set_target_gpu
        set_target_gpu(1)
        def f():
            import torch
            x = torch.empty(1024, device="cuda:1")
            return x
        with LineProfiler(f) as profiler:
            f()
        profiler.print_stats()
        """,
        tmp_path,
        env=environment(),
    )
    assert "device: cuda:1" in run.stdout and values(run.stdout, "return x")[0] == "4.00K"
