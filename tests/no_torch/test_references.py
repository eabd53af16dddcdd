"""Nothing is kept alive: tensors, frames, exceptions, code; memory depends on lines, not on hits."""

from __future__ import annotations

import sys

import pytest
from program_support import Block, free, level
from run_program import SETTRACE, run_program

from pytorch_memlab_c import LineProfiler, profile, profile_every

# ---- nothing is kept ----


def test_tensors_are_not_kept_alive_and_freed_at_the_same_moment():
    torch = pytest.importorskip("torch")
    import weakref

    def f(x, seen):
        y = x + 1
        seen += [weakref.ref(x), weakref.ref(y)]
        del x
        seen.append(seen[0]() is None)
        return None

    for decorate in (lambda f: f, profile(device="cpu"), profile_every(10**9)):
        seen = []
        decorate(f)(torch.ones(10), seen)
        assert [seen[0](), seen[1]()] == [None, None]
        assert seen[2] is (sys.version_info >= (3, 11))  # before, the caller's stack holds arguments


def test_frames_are_not_kept():
    import gc

    def f():
        big = Block(1000)
        return big.size

    gc.collect()
    gc.disable()
    try:
        before = level()
        with LineProfiler(f, device="cpu"):
            f()
            assert level() == before
        profile(f, device="cpu")()
        assert level() == before
    finally:
        gc.enable()


REFERENCES = """
import gc, sys, threading, asyncio
from pytorch_memlab_c import LineProfiler, _native, profile, profile_every
from pytorch_memlab_c.line_profiler import decorators
from program_support import allocate, free, report

def f(x):
    allocate(10)
    y = [x]
    free(10)
    return y

def generator():
    yield 1
    yield 2

async def coroutine():
    return 1

def raises():
    raise KeyError

class Model:
    def forward(self, x):
        return f(x)

decorated = profile(f)
every = profile_every(10**9)(f)
decorated_generator, decorated_coroutine, decorated_raises = profile(generator), profile(coroutine), profile(raises)

def enabled():
    with LineProfiler(f, generator, Model.forward, device="cpu") as profiler:
        f(1)
        list(generator())
        half = generator()
        next(half)
        Model().forward(2)
    profiler.records()
    profiler.clear()

kept = LineProfiler(f)
def enabled_again():
    with kept:
        f(1)

def decorators_run():
    decorated(1)
    every(1)
    list(decorated_generator())
    next(decorated_generator())
    try: decorated_coroutine().send(None)
    except StopIteration: pass
    try: decorated_raises()
    except KeyError: pass

def with_tracer():
    def tracer(frame, event, arg): return tracer
    sys.settrace(tracer)
    decorated(1)
    with kept: f(1)
    sys.settrace(None)

def in_thread():
    with kept:
        thread = threading.Thread(target=f, args=(1,))
        thread.start(); thread.join()
    thread = threading.Thread(target=decorated, args=(1,))
    thread.start(); thread.join()

entries = []
_native.enter(entries)
entry_type = type(entries.pop())
hook_type = next(type(x) for x in gc.get_objects() if type(x).__name__ == "Hook")
WATCHED = [f, f.__code__, generator.__code__, raises.__code__, Model.forward, Model, _native.Tracer, hook_type,
    entry_type,
           kept, kept._tracer, None.__class__, decorators._nothing, KeyError]

def counts():
    gc.collect()
    return [sys.getrefcount(x) for x in WATCHED] + [len(gc.get_objects())]

for name, cycle, times in (("enabled", enabled, 1000), ("again", enabled_again, 1000),
    ("decorators", decorators_run, 1000),
                           ("tracer", with_tracer, 1000), ("thread", in_thread, 200)):
    for _ in range(20): cycle()
    before = counts()
    for _ in range(times): cycle()
    after = counts()
    report(**{name: [b - a for a, b in zip(before, after)]})
hooks = [x for x in gc.get_objects() if type(x) is hook_type]
report(hooks=len(hooks))
"""


@pytest.mark.parametrize("env", [None, SETTRACE], ids=["default", "settrace"])
def test_reference_counts_are_stable_over_a_thousand_cycles(tmp_path, env):
    run = run_program(REFERENCES, tmp_path, env=env)
    for name in ("enabled", "again", "decorators", "tracer", "thread"):
        *counts, objects = run.values[name]
        assert all(abs(difference) <= 5 for difference in counts), (name, counts)
        assert objects <= 50, (name, objects)
    assert run.values["hooks"] == 1  # those of ended threads are gone


def test_memory_is_bounded_by_lines_and_not_by_hits(tmp_path):
    run = run_program(
        """
        import resource
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, decorated, free, report

        def run(n):
            for i in range(n):
                allocate(i)
                free(i)

        def recursive(n):
            return n and recursive(n - 1)

        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        wrapped = profile(recursive)
        with LineProfiler(run, device="cpu") as profiler:
            run(1000)
            wrapped(100)
            before = rss()
            run(300_000)
            for _ in range(2000):
                wrapped(100)
            grown = rss() - before
        report(grown=grown, hits=sum(line.hits for line in profiler.records().functions[0].lines))
        """,
        tmp_path,
    )
    assert run.values["hits"] > 900_000
    assert run.values["grown"] < 1 << 20


def test_a_profiler_that_is_dropped_gives_its_memory_back(tmp_path):
    run = run_program(
        """
        import resource
        from pytorch_memlab_c import LineProfiler
        from program_support import report

        source = "def f(x):\\n" + "".join(f"    x += {i}\\n" for i in range(2000)) + "    return x\\n"
        exec(source)

        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        def cycle():
            with LineProfiler(f, device="cpu") as profiler:
                f(1)

        for _ in range(20): cycle()
        before = rss()
        for _ in range(300): cycle()
        report(grown=rss() - before)
        """,
        tmp_path,
    )
    assert run.values["grown"] < 2 << 20


def test_a_profiler_dropped_while_enabled_does_no_harm(tmp_path):
    run = run_program(
        """
        import gc, sys, threading
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, free, report, report_lines

        def f():
            allocate(10)
            free(10)

        def forget():
            LineProfiler(f).enable()

        forget()
        gc.collect()
        f()
        with LineProfiler(f) as profiler:
            f()
        thread = threading.Thread(target=f); thread.start(); thread.join()
        report_lines(f=profiler)
        """,
        tmp_path,
    )
    assert run.values["f"] == {"allocate(10)": [1, 10, 10], "free(10)": [1, 10, -10]}


def test_a_function_that_is_gone_while_it_is_profiled():
    def make(size):
        namespace = {"Block": Block}
        exec(f"def f():\n    block = Block({size})\n    return block.size\n", namespace)
        return namespace["f"]

    with LineProfiler(device="cpu") as profiler:
        for size in range(50):
            function = make(size)
            profiler.add_function(function)
            assert function() == size
            del function
    nets = [line.stats["cpu"][8] for f in profiler.records().functions for line in f.lines if line.line == 2]
    assert nets == list(range(50))


def test_settings_of_the_program_are_left_alone():
    import gc
    import threading
    import warnings

    def state():
        return (
            gc.isenabled(), gc.get_threshold(), sys.getrecursionlimit(), sys.getswitchinterval(), sys.getprofile(),
            threading.gettrace() if hasattr(threading, "gettrace") else None, sys.excepthook, list(warnings.filters),
        )  # fmt: skip

    before = state()
    profiler = LineProfiler(lambda: 1, device="cpu")
    with profiler:
        pass
    profiler.records().to_text()
    assert state() == before


def test_the_cycle_of_free_and_allocate_does_not_drift():
    """Thousands of profiled runs leave the level where it was."""

    @profile(device="cpu")
    def f():
        block = Block(10)
        del block
        free(0)

    before = level()
    for _ in range(5000):
        f()
    assert level() == before
