"""Public reports about generators and coroutines (cases 13 to 16)."""

from __future__ import annotations

import asyncio
import gc
import sys
import types

import pytest
from program_support import Block, allocate, both_ways, free, hits, level, lines, nets, peaks
from run_program import run_program, titles

from pytorch_memlab_c import LineProfiler, profile, profile_every

# ---- 13: generators ----


def test_case_13_a_generator_started_and_dropped_shows_the_lines_reached():
    def g():
        allocate(1000)
        free(1000)
        yield 1
        allocate(5000)
        yield 2

    before = level()
    for profiler, function, enabled in both_ways(g):
        with enabled:
            generator = function()
            assert next(generator) == 1
            del generator
        assert hits(profiler) == {"allocate(1000)": 1, "free(1000)": 1, "yield 1": 1}
        assert peaks(profiler) == {"allocate(1000)": before + 1000, "free(1000)": before + 1000, "yield 1": before}


def test_case_13_memory_between_yields_belongs_to_the_caller():
    def g():
        allocate(100)
        yield
        free(100)

    def caller():
        generator = g()
        next(generator)
        allocate(7000)
        free(7000)
        next(generator, None)

    before = level()
    with LineProfiler(g, caller, device="cpu") as profiler:
        caller()
    assert peaks(profiler, g.__qualname__) == {
        "allocate(100)": before + 100, "yield": before + 100, "free(100)": before + 100
    }  # fmt: skip
    assert peaks(profiler, caller.__qualname__) == {
        "generator = g()": before,
        "next(generator)": before + 100,
        "allocate(7000)": before + 7100,
        "free(7000)": before + 7100,
        "next(generator, None)": before + 100,
    }
    assert nets(profiler, caller.__qualname__)["next(generator)"] == 100


def test_generator_protocol_is_kept_by_the_wrapper():
    def g():
        received = []
        try:
            while True:
                try:
                    received.append((yield len(received)))
                except KeyError as error:
                    received.append(error)
        finally:
            log.append("closed")
        return received

    def returning():
        return (yield from iter([1, 2])), "end"

    log = []
    for function in (g, profile(g, device="cpu")):
        generator = function()
        key_error = KeyError("k")
        assert [next(generator), generator.send("a"), generator.throw(key_error), generator.send(None)] == [0, 1, 2, 3]
        with pytest.raises(ZeroDivisionError):
            generator.throw(ZeroDivisionError())
        assert list(generator) == []
        assert function().close() is None
    assert log == ["closed", "closed"]
    for function in (returning, profile(returning, device="cpu")):
        generator = function()
        assert (next(generator), next(generator)) == (1, 2)
        with pytest.raises(StopIteration) as stop:
            next(generator)
        assert stop.value.value == (None, "end")


def test_a_generator_interleaved_with_another_of_its_kind():
    def g(size):
        allocate(size)
        yield
        free(size)

    before = level()
    for profiler, function, enabled in both_ways(g):
        with enabled:
            for _ in zip(function(1000), function(300), strict=False):
                pass
            gc.collect()
        assert lines(profiler)["allocate(size)"][:6] == (2, before + 1300, 1300, 1000, 1000, 300)
        free(level() - before)  # the second was not resumed when the first ended


# ---- 14: asynchronous generators ----


def test_case_14_an_asynchronous_generator_has_hits_and_peaks():
    async def source():
        for size in (1000, 2000):
            block = Block(size)
            await asyncio.sleep(0)
            yield block.size

    async def consume(function):
        return [size async for size in function()]

    before = level()
    for profiler, function, enabled in both_ways(source):
        with enabled:
            assert asyncio.run(consume(function)) == [1000, 2000]
        shown = lines(profiler)
        assert hits(profiler) == {
            "for size in (1000, 2000):": 3,
            "block = Block(size)": 2,
            "await asyncio.sleep(0)": 2,
            "yield block.size": 2,
        }
        assert shown["block = Block(size)"].peak == before + 3000  # the new one is there before the old one goes
        assert shown["block = Block(size)"].net == 2000
        assert level() == before


def test_asynchronous_generator_protocol_is_kept_by_the_wrapper():
    async def g():
        received = []
        try:
            while True:
                try:
                    received.append((yield len(received)))
                    await asyncio.sleep(0)
                except KeyError as error:
                    received.append(error)
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def drive(function):
        generator = function()
        steps = [await generator.__anext__(), await generator.asend("a"), await generator.athrow(KeyError("k"))]
        await generator.aclose()
        with pytest.raises(StopAsyncIteration):
            await generator.__anext__()
        other = function()
        await other.__anext__()
        with pytest.raises(ZeroDivisionError):
            await other.athrow(ZeroDivisionError())
        never_started = function()
        await never_started.aclose()
        return steps

    log = []
    for function in (g, profile(g, device="cpu")):
        assert asyncio.run(drive(function)) == [0, 1, 2]
    assert log == ["closed"] * 4


def test_an_asynchronous_generator_left_half_way_is_closed_by_the_loop():
    async def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    async def drive(function):
        async for _ in function():
            break
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()

    log = []
    for function in (g, profile(g, device="cpu")):
        asyncio.run(drive(function))
    assert log == ["closed", "closed"]


# ---- 15 and 16: coroutines ----


def test_case_15_peaks_of_tasks_are_not_mixed():
    async def f(size):
        block = Block(size)
        await asyncio.sleep(0)
        del block
        await asyncio.sleep(0)

    async def main(function):
        await asyncio.gather(function(1000), function(20), function(300))

    before = level()
    for profiler, function, enabled in both_ways(f):
        with enabled:
            asyncio.run(main(function))
        shown = lines(profiler)
        # first run: nothing else is there; then each task adds its own block
        assert shown["block = Block(size)"][:6] == (3, before + 1320, 1320, 1000, 1000, 300)
        assert shown["del block"][:6] == (3, before + 1320, -1320, -1000, -20, -300)
        assert hits(profiler)["await asyncio.sleep(0)"] == 3
        assert level() == before


def test_case_15_a_task_is_not_charged_for_what_another_does_while_it_waits():
    async def waiter(started, go_on):
        allocate(10)
        started.set()
        await go_on.wait()
        free(10)

    async def other(started, go_on):
        await started.wait()
        allocate(9000)
        free(9000)
        go_on.set()

    async def main():
        events = asyncio.Event(), asyncio.Event()
        await asyncio.gather(waiter(*events), other(*events))

    before = level()
    with LineProfiler(waiter, other, device="cpu") as profiler:
        asyncio.run(main())
    assert peaks(profiler, waiter.__qualname__)["await go_on.wait()"] == before + 10
    assert peaks(profiler, other.__qualname__)["allocate(9000)"] == before + 9010


def test_case_15_profile_every_prints_when_the_coroutine_has_finished(capsys):
    @profile_every(1, device="cpu")
    async def f():
        block = Block(4096)
        await asyncio.sleep(0)
        printed_meanwhile.append(capsys.readouterr().out)
        return block.size

    async def main():
        return await asyncio.gather(f(), f(), f())

    printed_meanwhile = []
    assert asyncio.run(main()) == [4096] * 3
    printed = "".join(printed_meanwhile) + capsys.readouterr().out
    assert printed_meanwhile[0] == ""  # nothing before the first had finished
    assert len(titles(printed)) == 3


def test_case_16_async_functions_are_profiled():
    async def f():
        allocate(512)
        free(512)

    before = level()
    for profiler, function, enabled in both_ways(f):
        with enabled:
            asyncio.run(function())
        assert peaks(profiler) == {"allocate(512)": before + 512, "free(512)": before + 512}


def test_a_coroutine_that_is_cancelled_raises_cancelled_error_and_frees():
    async def f():
        block = Block(100)
        await asyncio.sleep(60)
        return block

    async def main(function):
        task = asyncio.ensure_future(function())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = level()
    for profiler, function, enabled in both_ways(f):
        with enabled:
            asyncio.run(main(function))
        assert hits(profiler) == {"block = Block(100)": 1, "await asyncio.sleep(60)": 1}
        gc.collect()  # the task and the traceback hold each other
        assert level() == before


def test_a_coroutine_never_awaited_warns_as_without():
    async def f():
        pass

    with pytest.warns(RuntimeWarning, match="f' was never awaited"):
        coroutine = profile(f, device="cpu")()
        del coroutine
        gc.collect()


def test_a_generator_based_coroutine_can_be_awaited():
    @types.coroutine
    def g(size):
        allocate(size)
        received = yield "out"
        free(size)
        return received

    async def main(function):
        return await function(256)

    before = level()
    for profiler, function, enabled in both_ways(g):
        with enabled:
            coroutine = main(function)
            assert coroutine.send(None) == "out"
            with pytest.raises(StopIteration) as stop:
                coroutine.send("in")
        assert stop.value.value == "in"
        assert peaks(profiler)["allocate(size)"] == before + 256


@pytest.mark.skipif(sys.version_info < (3, 12), reason="inspect.markcoroutinefunction is of Python 3.12")
def test_a_plain_function_marked_as_a_coroutine_function():
    import inspect

    async def inner():
        return 5

    @inspect.markcoroutinefunction
    def f():
        return asyncio.ensure_future(inner())

    wrapped = profile(f, device="cpu")

    async def main():
        return await wrapped()

    assert inspect.iscoroutinefunction(wrapped)
    assert asyncio.run(main()) == 5


CANCELLED = """
import asyncio, gc, weakref
from program_support import report
from pytorch_memlab_c import profile

class Thing:
    pass

refs = []

@profile
async def serve():
    thing = Thing()
    refs.append(weakref.ref(thing))
    await asyncio.sleep(60)

@profile
async def numbers():
    thing = Thing()
    refs.append(weakref.ref(thing))
    yield 1
    yield 2

async def main():
    try:
        await asyncio.wait_for(serve(), 0.01)
    except asyncio.TimeoutError:
        pass
    task = asyncio.ensure_future(serve())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    del task
    source = numbers()
    await source.__anext__()
    try:
        await source.athrow(OSError())
    except OSError:
        pass
    del source

gc.disable()
asyncio.run(main())
report(left=[ref() is not None for ref in refs])
"""


def test_nothing_is_kept_when_a_coroutine_is_cancelled_or_an_async_generator_thrown_into(tmp_path):
    assert run_program(CANCELLED, tmp_path).values["left"] == [False, False, False]
