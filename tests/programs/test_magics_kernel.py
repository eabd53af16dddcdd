"""`%mlrun` in a real kernel, as notebooks use it: what is displayed, top-level await, and interrupts."""

from __future__ import annotations

import re
from typing import Any

import pytest

for needed in ("nbclient", "ipykernel"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

from engines import NOT_RUN  # noqa: E402
from run_notebook import run_cells, text_of  # noqa: E402
from run_program import cells as values  # noqa: E402

COLORS = re.compile(r"\x1b\[[0-9;]*m")
CELLS = {
    "load": "%load_ext pytorch_memlab_c\nimport asyncio, os, signal, time\nfrom program_support import Block",
    "table": "%%mlrun\nheld = Block(1024)\nx = 3\nx + 4",
    "value": "_ + 1",
    "semicolon": "%mlrun -q 3 + 4;",
    "awaited": "%%mlrun\nmore = Block(1024)\nawait asyncio.sleep(0.01, 'slept')",
    "line_awaited": "y = %mlrun -q await asyncio.sleep(0, 5)\ny",
    "error": "%%mlrun\nlast = Block(100)\n1 / 0",
    # What the notebook's stop button does: it sends the kernel SIGINT.
    "interrupted": "%%mlrun\nbefore = Block(200)\nos.kill(os.getpid(), signal.SIGINT); time.sleep(100)\nafter = 1",
    "await_interrupted": """%%mlrun
again = Block(300)
asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
await asyncio.sleep(100)
after = 1""",
    "later": "%mlrun (before.size, again.size, 'after' in globals())",
    "together": """async def other():
    held = Block(50)
    await asyncio.sleep(0)
    return held
%mlrun -f other both = await asyncio.gather(other(), other())""",
    "pool": """%%mlrun -f double
import multiprocessing
def double(x):
    return 2 * x
with multiprocessing.get_context("fork").Pool(2) as pool:
    doubled = pool.map(double, [1, 2])
doubled""",
    "usage": "%mlrun -f nothing 1",
    "twice": "%mlrun -q -r x",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, Any]:
    return dict(zip(CELLS, run_cells(*CELLS.values())))


def kinds(outputs: list[Any]) -> list[str]:
    return [output.output_type for output in outputs]


def test_table_is_displayed_as_html_before_the_value(outputs: dict[str, Any]) -> None:
    table, result = outputs["table"]
    assert (table.output_type, result.output_type) == ("display_data", "execute_result")
    assert "<table" in table.data["text/html"] and "Cell In[2]" in table.data["text/html"]
    assert values(table.data["text/plain"], "held = Block(1024)") == ["1.00K", "1.00K", "1"]
    assert result.data["text/plain"] == "7"
    assert text_of(outputs["value"]) == "8\n" and outputs["semicolon"] == []


def test_await(outputs: dict[str, Any]) -> None:
    table, result = outputs["awaited"]
    assert values(table.data["text/plain"], "more = Block(1024)") == ["2.00K", "1.00K", "1"]
    assert values(table.data["text/plain"], "await asyncio.sleep(0.01, 'slept')")[-1] == "1"
    assert result.data["text/plain"] == "'slept'" and text_of(outputs["line_awaited"]) == "5\n"
    text = text_of(outputs["together"])
    assert values(text, "held = Block(50)")[1:] == ["50.00B", "2"]


def test_error_points_into_the_cell(outputs: dict[str, Any]) -> None:
    table, error = outputs["error"]
    assert values(table.data["text/plain"], "last = Block(100)")[1] == "100.00B"
    trace = COLORS.sub("", "\n".join(error.traceback))
    assert error.ename == "ZeroDivisionError" and "Cell In[7], line 3" in trace and "----> 3 1 / 0" in trace


@pytest.mark.parametrize("name, size", [("interrupted", "200.00B"), ("await_interrupted", "300.00B")])
def test_interrupt_stops_the_cell_and_shows_what_was_gathered(outputs: dict[str, Any], name: str, size: str) -> None:
    assert kinds(outputs[name]) == ["display_data", "error"]
    table, error = outputs[name]
    line = next(line.strip() for line in CELLS[name].splitlines() if "Block" in line)
    assert values(table.data["text/plain"], line)[1:] == [size, "1"]
    assert values(table.data["text/plain"], "after = 1") == ["0"]
    assert error.ename in ("KeyboardInterrupt", "CancelledError")
    assert text_of(outputs["later"]).endswith("(200, 300, False)\n")


def test_case_7_functions_of_the_cell_run_in_worker_processes(outputs: dict[str, Any]) -> None:
    assert text_of(outputs["pool"][-1:]) == "[2, 4]\n"
    assert f"double: {NOT_RUN}" in text_of(outputs["pool"])


def test_usage_error_is_one_line(outputs: dict[str, Any]) -> None:
    (line,) = text_of(outputs["usage"]).splitlines()
    assert line.startswith("UsageError: -f nothing: there is no function of that name")


def test_profiler_is_the_result(outputs: dict[str, Any]) -> None:
    assert "LineProfiler" in text_of(outputs["twice"])
