"""Another thread that is in the middle of a function."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def inside(work: Callable[[Callable[[], object]], None]) -> Iterator[None]:
    """For the time of the block a thread is where `work` calls its argument."""
    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        done.wait()

    thread = threading.Thread(target=work, args=(wait,))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()
