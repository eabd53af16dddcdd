"""What all tests share: decorated functions of one test are not reported at the end of all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytorch_memlab_c import decorators


@pytest.fixture(autouse=True)
def own_decorated_functions() -> Iterator[None]:
    """What a test decorates is dropped with it; what a test module decorates lasts."""
    before = len(decorators._profilers)
    yield
    del decorators._profilers[before:]


def pytest_sessionfinish() -> None:
    decorators._profilers.clear()
