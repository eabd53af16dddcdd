"""What keeps a tensor alive in whole programs: in a notebook, after an uncaught exception, in loops of the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_program import run_program

pytest.importorskip("torch")

IN_A_NOTEBOOK = """
import torch
from notebook_session import session
from program_support import report

with session() as notebook:
    notebook.run("import torch")
    notebook.run("class Model:\\n    def step(self):\\n        acts = [torch.ones(1001)]\\n        1 / 0")
    notebook.attempt("Model().step()")
    notebook.run("torch.ones(1002)")
    notebook.run("history = [torch.ones(1003) for _ in range(100)]\\nlast = history[-1]")
    shown = notebook.run("%mlkeepers").tables[0]
    results = notebook.run("%mlkeepers Out[6]").text
    variable = notebook.run("%mlkeepers last").text
    local = notebook.run("def f():\\n    inside = torch.ones(3)\\n    %mlkeepers inside\\nf()").text
    errors = [notebook.usage_error(f"%mlkeepers {code}") for code in ("nothing", "1 +", "'no tensor'")]
    notebook.run("%reset -f out")
    hint = next(line for line in shown.splitlines() if "acts[0]" in line).partition("freed by: ")[2][:-1]
    notebook.run(f"import gc, sys; {hint}")
    freed = notebook.run("%mlkeepers").tables[0]
    notebook.run("%unload_ext pytorch_memlab_c")
    gone = notebook.attempt("%mlkeepers").text
report(**{name: globals()[name] for name in ("shown", "results", "variable", "local", "errors", "freed", "gone")})
"""


def test_a_notebook(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    values = run_program(IN_A_NOTEBOOK, tmp_path).values
    shown = values["shown"]
    assert "100 tensors in history, of the notebook" in shown
    (failed,) = [line for line in shown.splitlines() if "acts[0]" in line]
    assert (
        "acts[0], local of " in failed and "at Cell In[4]:4 <- sys.last_" in failed and "(ZeroDivisionError)" in failed
    )
    assert "del sys.last_value" in failed and "; get_ipython().InteractiveTB.tb = None; gc.collect())" in failed
    (result,) = [line for line in shown.splitlines() if "Out[6]" in line]
    assert result.endswith("Out[6] (freed by: %reset -f out)")
    assert values["variable"].splitlines() == ["last, of the notebook", "history[99], of the notebook"]
    assert values["local"].startswith("inside, local of f at Cell In[")
    assert [error.partition(":")[0] for error in values["errors"]] == ["UsageError"] * 3
    assert "NameError" in values["errors"][0] and "SyntaxError" in values["errors"][1]
    assert "keepers() needs a tensor, not str" in values["errors"][2]
    assert "acts" not in values["freed"] and "Out[" not in values["freed"] and "history" in values["freed"]
    assert "not found" in values["gone"]


UNCAUGHT = """
import code, contextlib, io, sys
import torch
from pytorch_memlab_c import keepers
from program_support import report

def step():
    acts = {"k": torch.ones(1001)}
    raise ValueError(len(acts))

console = code.InteractiveConsole({"step": step})
with contextlib.redirect_stderr(io.StringIO()):
    console.push("step()")
del console
found = []
import gc
(tensor,) = [one for one in gc.get_objects() if type(one) is torch.Tensor and one.shape == (1001,)]
report(found=keepers(tensor))
"""


def test_the_last_exception_of_a_console(tmp_path: Path) -> None:
    first, *rest = run_program(UNCAUGHT, tmp_path).values["found"]
    assert first == "tensor, global of program.py"
    (line,) = rest
    assert (
        line.startswith("acts['k'], local of step at program.py:9 <- sys.last_")
        and "(ValueError) (freed by: del" in line
    )


LOADER = """
import time
import torch
from pytorch_memlab_c import MemReporter
from program_support import report

class Data(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i):
        time.sleep(0 if i else 2)  # the second worker's batch comes before that of the first
        return torch.full((1000 + i,), float(i))

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Data(), batch_size=None, num_workers=2, prefetch_factor=2)
    for batch in loader:
        rows = MemReporter()._display(False, "cpu", None, 0, True).sections[0].keepers.rows
        break
    report(rows=[row.text for row in rows])
"""


def test_batches_that_a_data_loader_has_waiting(tmp_path: Path) -> None:
    """The loop alone has the iterator, on its stack."""
    rows = run_program(LOADER, tmp_path).values["rows"]
    assert "batch, global of program.py" in rows
    (waiting,) = [row for row in rows if "_task_info" in row]
    assert "_MultiProcessingDataLoaderIter._task_info" in waiting
    assert "<- a _MultiProcessingDataLoaderIter, held by a call that runs" in waiting


MANY_OBJECTS = """
import resource, sys, time
import torch
from pytorch_memlab_c import MemReporter, keepers
from program_support import report

class Node:
    def __init__(self, i):
        self.a, self.b, self.c = [i], {"k": (i, [i])}, None

heap = [Node(i) for i in range(240_000)]
values = [torch.ones(10) for _ in range(10_000)]
last = torch.ones(3)
before = sys.getrefcount(last), sys.getrefcount(heap), sys.getrefcount(Node)
start = time.perf_counter()
found = keepers(last)
took = time.perf_counter() - start
rows = MemReporter()._display(False, "cpu", None, 0, True).sections[0].keepers.rows
after = sys.getrefcount(last), sys.getrefcount(heap), sys.getrefcount(Node)
report(found=found, took=took, same=before == after, first=rows[0].text)
"""


def test_a_large_heap(tmp_path: Path) -> None:
    values = run_program(MANY_OBJECTS, tmp_path).values
    assert values["found"] == ["last, global of program.py"] and values["same"]
    assert values["first"] == "10,000 tensors in values, global of program.py"
    assert values["took"] < 30
