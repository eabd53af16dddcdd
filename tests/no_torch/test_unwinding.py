"""Whatever unwinds cannot fail: at the recursion limit, and where signal handlers raise, nothing stays behind.

Before and after, `sys.gettrace()` and `threading.gettrace()` are what they were, and no profiler is enabled.
"""

from __future__ import annotations

import contextlib
import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from engines import settrace_only

from pytorch_memlab_c import LineProfiler, _native, peak_memory, profile, profile_every
from pytorch_memlab_c.process.peak import peaks_of_devices

SECONDS = 4.0


def is_clean() -> bool:
    return sys.gettrace() is None and threading.gettrace() is None and not _native.any_enabled()


# ---- what enters ----


def endless(n: int) -> int:
    return endless(n + 1)


@profile
def decorated(n: int = 0) -> int:
    return decorated(n + 1)


@profile_every(1_000_000)
def every(n: int = 0) -> int:
    return every(n + 1)


@profile
def ends() -> int:
    return endless(0)


@profile
def generator(n: int = 0) -> Iterator[int]:
    yield from generator(n + 1)


@profile
async def coroutine(n: int = 0) -> None:
    await coroutine(n + 1)


@profile
async def asynchronous(n: int = 0) -> Any:
    async for value in asynchronous(n + 1):
        yield value


def run_asynchronous() -> None:
    asynchronous().__anext__().send(None)


recursive = LineProfiler(endless)


def profiler_blocks() -> None:
    with recursive:
        profiler_blocks()


def window_blocks() -> None:
    with peaks_of_devices():
        window_blocks()


WAYS: dict[str, Callable[[], Any]] = {
    "profile": decorated,
    "profile_every": every,
    "plain recursion in a decorated function": ends,
    "generator": lambda: next(generator()),
    "coroutine": lambda: coroutine().send(None),
    "asynchronous generator": run_asynchronous,
    "LineProfiler": profiler_blocks,
    "window": window_blocks,
}


def at_depth(depth: int, way: Callable[[], Any]) -> Any:
    return at_depth(depth - 1, way) if depth else way()


@pytest.fixture
def low_limit() -> Iterator[int]:
    """How many frames are left below the recursion limit."""
    frames, frame = 0, sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(frames + 220)
    yield 200
    sys.setrecursionlimit(limit)


@pytest.mark.filterwarnings("ignore:coroutine")  # one that is refused before it begins
@pytest.mark.parametrize("name", WAYS)
def test_recursion_to_the_limit_from_each_depth(low_limit, name):
    for depth in range(low_limit):
        with contextlib.suppress(RecursionError):
            at_depth(depth, WAYS[name])
        assert is_clean(), depth


@pytest.mark.parametrize("name", ["profile", "LineProfiler", "generator"])
def test_recursion_to_the_limit_where_the_traceback_is_kept(low_limit, name):
    kept = []
    for depth in range(0, low_limit, 7):
        try:
            at_depth(depth, WAYS[name])
        except RecursionError as error:
            kept.append(error)
        assert is_clean(), depth
    assert len(kept) > 20


def test_executions_that_end_at_the_recursion_limit_are_counted_as_before(low_limit, capsys):
    @profile_every(10)
    def f(n):
        return f(n + 1)

    for _ in range(20):
        with contextlib.suppress(RecursionError):
            f(0)
    assert capsys.readouterr().out.count("## ") == 2


# ---- signal handlers that raise ----


class Interrupted(Exception):
    pass


def work() -> int:
    return sum(range(20))


@profile
def decorated_work() -> int:
    return work()


@profile_every(1_000_000)
def counted_work() -> int:
    return work()


@profile
def generator_work() -> Iterator[int]:
    yield work()
    yield work()


@profile
async def coroutine_work() -> int:
    return work()


def run_coroutine() -> None:
    with contextlib.suppress(StopIteration):
        coroutine_work().send(None)


nested = LineProfiler(work)


def with_profiler() -> None:
    with nested:
        work()
        with nested:
            work()


def with_two_profilers() -> None:
    with LineProfiler(work), LineProfiler(decorated_work):
        decorated_work()


def with_window() -> None:
    with peak_memory("cpu") as window:
        work()
    assert not window._window.is_open


INTERRUPTED: dict[str, Callable[[], Any]] = {
    "profile": decorated_work,
    "profile_every": counted_work,
    "generator": lambda: list(generator_work()),
    "coroutine": run_coroutine,
    "LineProfiler": with_profiler,
    "two LineProfilers": with_two_profilers,
}


@pytest.fixture
def raising_timer() -> Iterator[Callable[[float], None]]:
    """Starts a timer whose signal raises Interrupted."""

    def raises(number: int, frame: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, raises)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted_rounds(timer: Callable[[float], None], way: Callable[[], Any], check: Callable[[], None]) -> list[int]:
    """How many rounds were run, and in how many of them the signal came."""
    random_ = random.Random(1)
    began = time.perf_counter()
    way()
    longest = max(2 * (time.perf_counter() - began), 60e-6)
    end, rounds, interrupts = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        rounds += 1
        try:
            timer(random_.uniform(1e-6, longest))
            way()
            timer(0)
        except Interrupted:
            interrupts += 1
        check()
    return [rounds, interrupts]


@pytest.mark.filterwarnings("ignore:coroutine")  # one that is interrupted before it begins
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in gc callbacks of others (hypothesis)
@pytest.mark.parametrize("name", INTERRUPTED)
def test_interrupts_at_any_time_leave_nothing_behind(raising_timer, name):
    def check() -> None:
        assert sys.gettrace() is None and not _native.any_enabled()

    for _ in range(3):
        INTERRUPTED[name]()
    rounds, interrupts = interrupted_rounds(raising_timer, INTERRUPTED[name], check)
    assert interrupts > 20, (rounds, interrupts)
    INTERRUPTED[name]()
    with LineProfiler(work):
        pass
    assert is_clean()  # also what only the next profiler or thread mends
    gc.collect()


def test_interrupts_close_windows(raising_timer):
    window = peak_memory("cpu")

    def enter() -> None:
        with window:
            work()

    def check() -> None:
        assert not window._window.is_open

    rounds, interrupts = interrupted_rounds(raising_timer, enter, check)
    assert interrupts > 100, (rounds, interrupts)


@settrace_only
def test_the_trace_function_of_new_threads_is_put_back_after_an_interrupted_end(monkeypatch):
    profiler = LineProfiler(work)
    with monkeypatch.context() as patch:
        patch.setattr(LineProfiler, "_after_disable", lambda self: None)  # as if it were interrupted at once
        with profiler:
            work()
    assert sys.gettrace() is None and threading.gettrace() is not None
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert is_clean()
