"""The import paths that users may write: they stay, wherever a name is defined."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import pytorch_memlab_c
from pytorch_memlab_c import snapshot

PATHS = {
    "line_profiler": ["LineProfiler"],
    "records": ["LineRecords"],
    "decorators": ["profile", "profile_every", "print_stats", "clear_global_line_profiler"],
    "mem_reporter": ["MemReporter"],
    "chains": ["keepers"],
    "courtesy": ["Courtesy", "YieldedMemory"],
    "process": ["MetricResult", "measure_peak_memory", "measure_peak_rss", "peak_memory", "profile_workload"],
    "target_device": ["set_target_gpu"],
    "magics": ["load_ipython_extension", "unload_ipython_extension"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in PATHS.items() for name in names])
def test_a_name_is_the_same_everywhere(module: str, name: str) -> None:
    found = getattr(importlib.import_module(f"pytorch_memlab_c.{module}"), name)
    assert found is getattr(pytorch_memlab_c, name)


def test_the_package_has_no_other_names() -> None:
    assert set(pytorch_memlab_c.__all__) == {name for names in PATHS.values() for name in names}


def test_the_typed_program_uses_all_public_names() -> None:
    """`make lint` checks it with `mypy --strict`."""
    tree = ast.parse((Path(__file__).parents[1] / "typing" / "public_api.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    public = {*pytorch_memlab_c.__all__, *snapshot.__all__}
    assert public <= imported & used


def test_modules_that_are_used_by_name() -> None:
    from pytorch_memlab_c import simulate
    from pytorch_memlab_c.cli import main

    assert callable(main) and callable(simulate.enable) and callable(simulate.presets)
    pytest.importorskip("pytest", minversion="8")
    assert importlib.import_module("pytorch_memlab_c.pytest_plugin")
