"""What all tests share: the usual signals, and decorated functions of one test are not reported at the end of all."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import inherited_signals
import pytest
from program_support import allocate, free, level

from pytorch_memlab_c.line_profiler import decorators


def pytest_configure() -> None:
    inherited_signals.reset()


@pytest.fixture(autouse=True)
def own_decorated_functions() -> Iterator[None]:
    """What a test decorates is dropped with it; what a test module decorates lasts."""
    before = len(decorators._profilers)
    yield
    del decorators._profilers[before:]


@pytest.fixture
def only_made_up_bytes() -> Iterator[None]:
    """The CPU's level is 0: tensors that other tests have left in this process do not count."""
    if level():
        gc.collect()
    held = level()
    free(held)
    yield
    allocate(held)


def pytest_sessionfinish() -> None:
    decorators._profilers.clear()
