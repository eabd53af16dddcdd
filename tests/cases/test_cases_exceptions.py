"""Public reports about exceptions and recursion (cases 17 to 20)."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
from program_support import Block, allocate, both_ways, decorated, free, hits, level, lines, peaks
from run_program import run_program

from pytorch_memlab_c import LineProfiler, profile

# ---- 17: a trace function lost to a RecursionError ----


def test_case_17_after_a_recursion_error_the_next_call_is_profiled(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import allocate, decorated, free, report, report_lines

        def deep(n):
            return deep(n + 1)

        def python_tracer(frame, event, arg):
            return python_tracer

        def f():
            allocate(100)
            free(100)

        @profile
        def g(n):
            if n < 0:
                allocate(200)
                free(200)
                return
            g(n + 1)

        def run():
            with LineProfiler(f, deep) as profiler:
                try:
                    deep(0)
                except RecursionError:
                    f()
                try:
                    g(0)
                except RecursionError:
                    g(-1)
                f()
            return profiler

        plain = run()
        sys.settrace(python_tracer)   # a Python tracer is what CPython drops
        traced = run()
        sys.settrace(None)
        for profiler, key in ((plain, "plain"), (traced, "traced")):
            f_lines = {x.line - f.__code__.co_firstlineno: x.hits for x in profiler.records().functions[0].lines
                if x.hits}
            report(**{key: f_lines, key + "_deep": profiler.records().functions[1].calls > 100})
        report_lines(g=decorated("g"))
        """,
        tmp_path,
    )
    assert run.values["plain"] == run.values["traced"] == {"1": 2, "2": 2}
    assert run.values["plain_deep"] and run.values["traced_deep"]
    assert run.values["g"]["allocate(200)"] == [2, 200, 400]


def test_recursion_gives_each_level_its_right_peak():
    def f(n):
        if n == 0:
            return
        block = Block(100)
        f(n - 1)
        del block

    before = level()
    for profiler, function, enabled in both_ways(f):
        shown = []
        for depth in range(1, 6):
            profiler.clear()
            with enabled:
                function(depth)
            shown.append(lines(profiler)["f(n - 1)"])
            assert lines(profiler)["block = Block(100)"].peak == before + 100 * depth
        if enabled is profiler:  # decorated, `f` inside is the function without the decorator
            assert [line.hits for line in shown] == [1, 2, 3, 4, 5]
        assert [line.peak for line in shown] == [before + 100 * depth for depth in range(1, 6)]
        assert all(line.net == 0 for line in shown)


def test_recursion_through_the_decorator_five_deep():
    @profile(device="cpu")
    def f(n):
        if n == 0:
            return
        block = Block(100)
        f(n - 1)
        del block

    before = level()
    f(5)
    shown = lines(decorated(f.__qualname__))
    assert shown["f(n - 1)"][:3] == (5, before + 500, 0)
    assert shown["block = Block(100)"][:6] == (5, before + 500, 500, 100, 100, 100)
    assert hits(decorated(f.__qualname__))["if n == 0:"] == 6


def test_recursion_five_deep_where_each_level_has_its_own_line():
    def f(n):
        allocate(100)
        if n == 1:
            return free(100)
        if n == 2:
            f(1)
        if n == 3:
            f(2)
        if n == 4:
            f(3)
        if n == 5:
            f(4)
        free(100)

    before = level()
    with LineProfiler(f, device="cpu") as profiler:
        f(5)
    shown = peaks(profiler)
    # the line that calls f(k) holds the levels above it, its own, and all that are below
    assert [shown[f"f({k})"] - before for k in (1, 2, 3, 4)] == [500] * 4
    assert [lines(profiler)[f"f({k})"].net for k in (1, 2, 3, 4)] == [0] * 4


def test_mutual_recursion_keeps_the_functions_apart():
    def even(n):
        block = Block(10)
        return n == 0 or (odd(n - 1) and block.size > 0)

    def odd(n):
        block = Block(1000)
        return n != 0 and even(n - 1) and block.size > 0

    before = level()
    with LineProfiler(even, odd, device="cpu") as profiler:
        assert even(4) is True
    assert lines(profiler, even.__qualname__)["block = Block(10)"][:3] == (3, before + 2030, 30)
    assert lines(profiler, odd.__qualname__)["block = Block(1000)"][:3] == (2, before + 2020, 2000)
    assert level() == before


# ---- 18: exceptions pass at once (the measuring functions are another part) ----


def test_case_18_an_exception_passes_and_the_hook_is_gone():
    def f():
        allocate(100)
        free(100)
        1 / 0  # noqa: B018

    before = sys.gettrace()
    for profiler, function, enabled in both_ways(f):
        with pytest.raises(ZeroDivisionError), enabled:
            function()
        assert sys.gettrace() is before
        assert hits(profiler) == {"allocate(100)": 1, "free(100)": 1, "1 / 0  # noqa: B018": 1}


# ---- 19: a generator that is dropped ----


def test_case_19_dropping_a_generator_gives_no_extra_hit():
    def g():
        try:
            yield 1
            yield 2
        finally:
            free(50)

    for profiler, function, enabled in both_ways(g):
        with enabled:
            for _ in range(3):
                allocate(50)
                generator = function()
                next(generator)
                del generator
        assert hits(profiler) == {"try:": 3, "yield 1": 3, "free(50)": 3}
        assert profiler.records().functions[0].calls == 3


def test_case_19_a_generator_dropped_inside_a_profiled_caller():
    def g():
        yield 1
        yield 2

    def caller():
        generator = g()
        next(generator)
        del generator
        allocate(100)
        free(100)

    before = level()
    with LineProfiler(g, caller, device="cpu") as profiler:
        caller()
    assert hits(profiler, g.__qualname__) == {"yield 1": 1}
    assert peaks(profiler, caller.__qualname__)["allocate(100)"] == before + 100
    assert hits(profiler, caller.__qualname__) == dict.fromkeys(
        ["generator = g()", "next(generator)", "del generator", "allocate(100)", "free(100)"], 1
    )


def test_a_generator_that_outlives_the_profiler_and_one_started_before():
    def g():
        allocate(10)
        yield 1
        allocate(20)
        yield 2
        free(30)

    before = level()
    profiler = LineProfiler(g, device="cpu")
    started_before = g()
    next(started_before)
    with profiler:
        next(started_before)
        left_over = g()
        next(left_over)
    assert hits(profiler) == {"allocate(20)": 1, "yield 2": 1, "allocate(10)": 1, "yield 1": 1}
    assert peaks(profiler)["allocate(20)"] == before + 30
    list(started_before), list(left_over)
    assert hits(profiler)["yield 2"] == 1
    assert level() == before


# ---- 20: nothing is kept alive by an exception ----


def test_case_20_after_an_exception_the_memory_is_given_back():
    def f():
        big = Block(10**6)
        raise ValueError(big.size)

    before = level()
    for profiler, function, enabled in both_ways(f):
        with enabled:
            try:
                function()
            except ValueError:
                assert level() == before + 10**6  # the traceback holds the frame, as without the profiler
            assert level() == before
        assert peaks(profiler)["raise ValueError(big.size)"] == before + 10**6


def test_case_20_neither_exception_nor_traceback_nor_frame_is_kept():
    class Watched(Exception):
        pass

    def f():
        local = {1}
        seen.append(weakref.ref(local))
        raise Watched

    seen = []
    gc.disable()
    try:
        for _profiler, function, enabled in both_ways(f):
            with enabled:
                try:
                    function()
                except Watched as error:
                    seen.append(weakref.ref(error))
        assert [reference() for reference in seen] == [None] * 4
    finally:
        gc.enable()


def test_case_20_tensors_of_a_function_that_raised():
    torch = pytest.importorskip("torch")

    def f():
        big = torch.ones(1000, 1000)
        small = big[:1]
        raise RuntimeError(small.shape)

    for profiler, function, enabled in both_ways(f):
        before = level()
        with enabled:
            try:
                function()
            except RuntimeError:
                pass
            assert level() == before
        assert peaks(profiler)["big = torch.ones(1000, 1000)"] == before + 4_000_000
