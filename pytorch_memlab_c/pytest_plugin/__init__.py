"""The pytest plugin: `@pytest.mark.limit_tensor_memory("200 MB", device="cpu")` and `--memlab-report`.

What is limited is the peak of a test's call above what was held when the call began: what fixtures made before is not
part of it. On the CPU these are tensor bytes, on GPUs allocated bytes. pytest loads this module by itself; nothing
happens, and PyTorch is not imported, where no test is marked and the option is not given.
"""

from __future__ import annotations

from typing import Any

import pytest

from .limits import MARK

if getattr(pytest, "version_tuple", (0,)) >= (8,):
    from .hooks import (
        pytest_addoption,
        pytest_collection_finish,
        pytest_configure,
        pytest_make_collect_report,
        pytest_runtest_call,
        pytest_runtest_makereport,
    )

    __all__ = [
        "pytest_addoption",
        "pytest_collection_finish",
        "pytest_configure",
        "pytest_make_collect_report",
        "pytest_runtest_call",
        "pytest_runtest_makereport",
    ]
else:  # pytest loads this by itself: only who uses the mark may notice

    def pytest_collection_modifyitems(items: list[Any]) -> None:
        if any(item.get_closest_marker(MARK) for item in items):
            raise pytest.UsageError(f"@pytest.mark.{MARK} needs pytest 8 or newer; this is {pytest.__version__}")
