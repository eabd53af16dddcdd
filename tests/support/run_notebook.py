"""Runs notebooks in a real kernel, without the files and settings of the user who runs it.

`python tests/support/run_notebook.py demo.ipynb` runs one and keeps its outputs in it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from run_program import is_own_setting


@contextmanager
def _own_folders(env: dict[str, str]) -> Iterator[str]:
    """Jupyter's and IPython's folders, and no setting of the profiler but `env`, for kernels started inside."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        for name in [*filter(is_own_setting, os.environ)]:
            del os.environ[name]
        names = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
        os.environ.update({name: str(Path(folder, name.lower())) for name in names})
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), before.get("PYTHONPATH", "")])
        os.environ.update(env)
        try:
            yield folder
        finally:
            os.environ.clear()
            os.environ.update(before)


def run(notebook: Any, *, allow_errors: bool = False, env: dict[str, str] | None = None) -> Any:
    """Run all cells, in an empty folder; returns the notebook with its outputs.

    Raises `CellExecutionError` for a cell that fails, unless `allow_errors`.
    """
    with _own_folders(env or {}) as folder:
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            allow_errors=allow_errors,
            record_timing=False,
            coalesce_streams=True,
        )
        return client.execute()


def run_cells(*cells: str, env: dict[str, str] | None = None) -> list[Any]:
    """Run pieces of code, also after one has failed; the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return [cell.outputs for cell in run(notebook, allow_errors=True, env=env).cells]


def text_of(outputs: list[Any]) -> str:
    """What a reader sees without HTML: printed text, displayed objects and results, and errors."""
    parts = []
    for output in outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append("\n".join(output.traceback))
        else:
            parts.append(output.data["text/plain"] + "\n")
    return "".join(parts)


def is_log(output: Any) -> bool:
    """Whether PyTorch's own log wrote it, with the time of day."""
    return output.output_type == "stream" and output.name == "stderr" and "CUDACachingAllocator.cpp" in output.text


def _keep_outputs(path: str) -> None:
    notebook = run(nbformat.read(path, as_version=4))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not is_log(output)]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, path)


if __name__ == "__main__":
    _keep_outputs(sys.argv[1])
