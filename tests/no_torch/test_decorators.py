"""`@profile` and `@profile_every` (spec.md 2): when they print, what they count, and what they leave alone."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

import pytest
from engines import settrace_only
from program_support import Block, allocate, decorated, free, hits, level, lines
from run_program import cells, run_program, titles

from pytorch_memlab_c import LineProfiler, _native, profile, profile_every
from pytorch_memlab_c.line_profiler import decorators

# ---- profile: printed once, however the process ends ----

PROGRAM = """
import os, sys, time
from pytorch_memlab_c import profile
from program_support import allocate, free

@profile
def f(size):
    allocate(size)
    free(size)

@profile
def g():
    return 5

for size in (1024, 4096, 2048):
    f(size)
g()
print("ran", flush=True)
"""
ENDINGS = {
    "normal": ("", 0, ""),
    "sys.exit": ("sys.exit(3)", 3, ""),
    "sys.exit message": ("sys.exit('stopped')", 1, "stopped"),
    "exception": ("raise KeyError('boom')", 1, "KeyError: 'boom'"),
    "exception inside": ("f('x')", 1, "TypeError"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_profile_is_printed_once_at_every_end(tmp_path, ending):
    last_line, code, error = ENDINGS[ending]
    run = run_program(PROGRAM + last_line, tmp_path, check=False)
    assert run.returncode == code
    assert error in run.stderr and (error or run.stderr == "")
    assert titles(run.stdout) == ["f", "g"]
    assert run.stdout.startswith("ran\n")
    last = ["0.00B", "4"] if ending == "exception inside" else ["2.00K", "3"]
    assert cells(run.stdout, "allocate(size)") == ["4.00K", *last]
    assert cells(run.stdout, "free(size)") == ["4.00K", "-2.00K", "3"]
    assert cells(run.stdout, "return 5") == ["0.00B", "0.00B", "1"]


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_the_profile_is_printed_once_after_ctrl_c(tmp_path, where):
    wait = {
        "outside": "print('waiting', flush=True); time.sleep(60)",
        "inside": "@profile\ndef waits():\n    print('waiting', flush=True)\n    time.sleep(60)\nwaits()",
    }[where]
    run = run_program(f"{PROGRAM}\n{wait}", tmp_path, interrupt_at="waiting", check=False)
    assert "KeyboardInterrupt" in run.stderr
    assert run.returncode in (-2, 130)
    assert titles(run.stdout) == ["f", "g"] + (["waits"] if where == "inside" else [])
    assert cells(run.stdout, "allocate(size)") == ["4.00K", "2.00K", "3"]
    if where == "inside":
        assert cells(run.stdout, "time.sleep(60)") == ["0.00B", "0.00B", "1"]


def test_os_exit_prints_nothing(tmp_path):
    run = run_program(PROGRAM + "os._exit(0)", tmp_path)
    assert titles(run.stdout) == []


def test_results_of_threads_that_have_ended_are_printed(tmp_path):
    run = run_program(
        PROGRAM
        + """
import threading
thread = threading.Thread(target=f, args=(8192,))
thread.start()
thread.join()
""",
        tmp_path,
    )
    assert cells(run.stdout, "allocate(size)") == ["8.00K", "8.00K", "4"]


def test_a_thread_that_still_runs_at_the_end_does_no_harm(tmp_path):
    run = run_program(
        PROGRAM
        + """
import threading
def forever():
    while True:
        f(16)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
""",
        tmp_path,
    )
    assert titles(run.stdout) == ["f", "g"]
    assert run.stderr == ""


def test_results_are_maxima_over_all_runs_and_threads():
    @profile(device="cpu")
    def f(size):
        allocate(size)
        free(size)

    before = level()
    for size in (10, 500, 20):
        f(size)
    thread = threading.Thread(target=f, args=(300,))
    thread.start()
    thread.join()
    row = lines(decorated(f.__qualname__))["allocate(size)"]
    assert (row.hits, row.peak, row.net, row.net_max, row.net_last) == (4, before + 500, 830, 500, 300)


def test_columns_of_the_decorator_are_the_ones_printed(tmp_path):
    run = run_program(
        """
        from pytorch_memlab_c import profile, profile_every
        from program_support import allocate
        @profile(columns=["hits", "allocated", "tensor_bytes.current"])
        def f():
            allocate(1024)
        @profile_every(1, columns="allocations")
        def g():
            allocate(1)
        f()
        g()
        """,
        tmp_path,
    )
    assert cells(run.stdout, "allocate(1024)") == ["1", "1.00K", "1.00K"]
    assert cells(run.stdout, "allocate(1)") == ["1"]


def test_a_decorated_function_of_a_module_that_is_reloaded(tmp_path, monkeypatch):
    import importlib

    source = "from pytorch_memlab_c import profile\n@profile(device='cpu')\ndef f():\n    return {}\n"
    (tmp_path / "reloaded.py").write_text(source.format(1))
    monkeypatch.syspath_prepend(str(tmp_path))
    import reloaded

    assert reloaded.f() == 1
    (tmp_path / "reloaded.py").write_text(source.format(22))
    importlib.reload(reloaded)
    assert reloaded.f() == 22


# ---- profile_every ----


def test_profile_every_prints_the_figures_of_those_executions(capsys):
    @profile_every(2, device="cpu", columns=["tensor_bytes.peak", "net.last", "net.total", "hits"])
    def f(size):
        allocate(size)
        free(size)
        return size

    printed = []
    for size in (1024, 4096, 512, 256, 99):
        assert f(size) == size
        printed.append(capsys.readouterr().out)
    assert [len(titles(text)) for text in printed] == [0, 1, 0, 1, 0]
    assert cells(printed[1], "allocate(size)")[1:] == ["4.00K", "5.00K", "2"]
    assert cells(printed[3], "allocate(size)")[1:] == ["256.00B", "768.00B", "2"]


def test_profile_every_of_one_is_the_default(capsys):
    @profile_every(device="cpu")
    def f():
        return 1

    f()
    f()
    assert len(titles(capsys.readouterr().out)) == 2


def test_profile_every_with_enable_false_leaves_the_function(capsys):
    def f():
        return 1

    assert profile_every(1, enable=False)(f) is f
    assert profile_every(enable=False)(len) is len
    f()
    assert capsys.readouterr().out == ""


def test_profile_every_prints_after_an_exception(capsys):
    @profile_every(2, device="cpu")
    def f(fails):
        allocate(1024)
        free(1024)
        if fails:
            raise KeyError("boom")

    for fails in (True, False, True):
        if fails:
            with pytest.raises(KeyError, match="boom"):
                f(True)
        else:
            f(False)
    printed = capsys.readouterr().out
    assert titles(printed) == [f.__qualname__]
    assert cells(printed, 'raise KeyError("boom")')[-1] == "1"
    assert cells(printed, "allocate(1024)")[-2:] == ["1.00K", "2"]


def test_profile_every_counts_a_recursion_once(capsys):
    @profile_every(1, device="cpu")
    def f(n):
        if n:
            f(n - 1)

    f(4)
    printed = capsys.readouterr().out
    assert titles(printed) == [f.__qualname__]
    assert cells(printed, "if n:")[-1] == "5"


def test_profile_every_prints_after_a_generator_has_finished(capsys):
    @profile_every(2, device="cpu")
    def g(n):
        for i in range(n):
            allocate(256)
            yield i
            free(256)

    generator = g(3)
    assert [next(generator) for _ in range(3)] == [0, 1, 2]
    assert list(g(1)) == [0]
    assert capsys.readouterr().out == ""  # one of two has finished
    assert list(generator) == []
    printed = capsys.readouterr().out
    assert titles(printed) == [g.__qualname__]
    assert cells(printed, "allocate(256)")[-2:] == ["256.00B", "4"]


@pytest.mark.parametrize("end", ["close", "drop", "throw", "raise"])
def test_profile_every_counts_a_generator_that_ends_otherwise(capsys, end):
    @profile_every(1, device="cpu")
    def g():
        yield 1
        raise KeyError

    generator = g()
    next(generator)
    assert capsys.readouterr().out == ""
    if end == "close":
        generator.close()
    elif end == "drop":
        del generator
    else:
        with pytest.raises(KeyError):
            generator.throw(KeyError()) if end == "throw" else next(generator)
    assert len(titles(capsys.readouterr().out)) == 1


def test_profile_every_on_a_coroutine_and_an_asynchronous_generator(capsys):
    @profile_every(1, device="cpu")
    async def f(fails):
        await asyncio.sleep(0)
        if fails:
            raise KeyError

    @profile_every(1, device="cpu")
    async def g():
        yield 1
        await asyncio.sleep(0)
        yield 2

    async def main():
        await f(False)
        with pytest.raises(KeyError):
            await f(True)
        return [x async for x in g()]

    assert asyncio.run(main()) == [1, 2]
    assert titles(capsys.readouterr().out) == [f.__qualname__] * 2 + [g.__qualname__]


def test_profile_every_prints_nothing_at_exit(tmp_path):
    run = run_program(
        """
        from pytorch_memlab_c import profile_every
        @profile_every(5)
        def f():
            return 1
        for _ in range(7): f()
        """,
        tmp_path,
    )
    assert titles(run.stdout) == ["f"]


def test_profile_every_counts_executions_of_all_threads(tmp_path):
    run = run_program(
        """
        from concurrent.futures import ThreadPoolExecutor
        from pytorch_memlab_c import profile_every
        @profile_every(10)
        def f(i):
            return i
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(f, range(100))) == list(range(100))
        """,
        tmp_path,
    )
    assert len(titles(run.stdout)) == 10
    counted = [int(row.split()[2]) for row in run.stdout.splitlines() if row.endswith("return i")]
    assert sum(counted) <= 100 and len(counted) == 10


def test_profile_every_after_a_signal_handler_raised_between_an_execution_and_its_count(capsys):
    @profile_every(1)
    def f(i):
        return f(i - 1) if i else 0

    printer = decorators._printers[-1]
    entries = []
    printer.enter(entries)
    assert len(entries) == 1 and (sys.gettrace() is not None or _native.engine() == "monitoring")
    del entries[:]
    assert sys.gettrace() is None
    assert [f(2), f(1)] == [0, 0]
    assert titles(capsys.readouterr().out) == [f.__qualname__] * 3  # the interrupted one is counted by the next


def test_profile_every_where_printing_calls_the_profiled_function(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import profile_every

        class Stream:
            def write(self, text):
                f(1)
                return real.write(text)
            def flush(self):
                real.flush()

        @profile_every(3)
        def f(i):
            return i

        real, sys.stdout = sys.stdout, Stream()
        for i in range(3): f(i)
        sys.stdout = real
        """,
        tmp_path,
        timeout=30,
    )
    assert titles(run.stdout) == ["f"]


def test_profile_every_of_one_where_printing_calls_the_profiled_function(tmp_path):
    run = run_program(
        """
        import sys
        from pytorch_memlab_c import profile_every

        class Stream:
            def write(self, text):
                f(1)
                return real.write(text)

        @profile_every(1)
        def f(i):
            return i

        real, sys.stdout = sys.stdout, Stream()
        f(0); f(0)
        sys.stdout = real
        """,
        tmp_path,
        timeout=30,
    )
    assert len(titles(run.stdout)) == 2


def test_profile_every_of_generators_dropped_while_it_prints(tmp_path):
    """The collector may finish a profiled generator anywhere, also while the figures are taken."""
    run = run_program(
        """
        import gc
        from pytorch_memlab_c import profile_every

        @profile_every(2)
        def g():
            cycle = [None]
            cycle[0] = cycle
            yield cycle

        gc.set_threshold(1)
        for _ in range(200):
            generator = g()
            next(generator)[0] = [generator]
            del generator
        gc.collect()
        """,
        tmp_path,
        timeout=60,
    )
    assert titles(run.stdout)[0] == "g" and run.stderr == ""


# ---- several decorated functions together ----


def test_decorated_functions_that_call_each_other():
    @profile(device="cpu")
    def inner():
        block = Block(1000)
        return block.size

    @profile(device="cpu")
    def outer():
        kept = Block(50)
        size = inner()
        return kept.size + size

    before = level()
    assert outer() == 1050
    assert lines(decorated(outer.__qualname__))["size = inner()"][:3] == (1, before + 1050, 0)
    assert lines(decorated(inner.__qualname__))["block = Block(1000)"][:3] == (1, before + 1050, 1000)


def test_a_decorated_function_called_from_an_undecorated_one_only_counts_itself():
    @profile(device="cpu")
    def f():
        allocate(10)
        free(10)

    def plain():
        allocate(5000)
        f()
        free(5000)

    before = level()
    plain()
    assert lines(decorated(f.__qualname__))["allocate(10)"][:3] == (1, before + 5010, 10)


def test_a_decorated_function_handed_to_a_line_profiler_is_the_function_inside():
    @profile(device="cpu")
    def f():
        allocate(10)
        free(10)

    profiler = LineProfiler(f, device="cpu")
    with profiler:
        f()
    assert hits(profiler) == {"allocate(10)": 1, "free(10)": 1}
    assert profiler.records().functions[0].code is f.__wrapped__.__code__
    assert profiler.to_dataframe(f)["hits"].sum() == 2


def test_under_another_decorator_that_uses_wraps():
    import functools

    def twice(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            function(*arguments)
            return function(*arguments)

        return wrapper

    @twice
    @profile(device="cpu")
    def under(size):
        allocate(size)
        free(size)

    @profile(device="cpu")
    @twice
    def over(size):
        allocate(size)
        free(size)

    under(10)
    over(10)
    assert hits(decorated(under.__qualname__)) == {"allocate(size)": 2, "free(size)": 2}
    assert hits(decorated(over.__qualname__)) == {"allocate(size)": 2, "free(size)": 2}


def test_an_nn_module_forward_decorated():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(100, 50, bias=False)

        @profile(device="cpu")
        def forward(self, x):
            y = self.linear(x)
            return y * 2

    net, x = Net(), torch.ones(10, 100)
    net(x)
    profiler = decorated(Net.forward.__qualname__)
    profiler.clear()
    net(x).sum().backward()
    assert lines(profiler)["y = self.linear(x)"].net == 10 * 50 * 4
    assert lines(profiler)["y = self.linear(x)"].hits == 1
    assert net.linear.weight.grad is not None


def test_figures_stay_after_the_function_is_gone():
    def make():
        @profile(device="cpu")
        def temporary():
            allocate(10)
            free(10)

        temporary()
        return temporary.__qualname__

    name = make()
    gc.collect()
    assert hits(decorated(name)) == {"allocate(10)": 1, "free(10)": 1}


def test_an_object_of_a_decorated_class_is_not_kept_alive():
    import weakref

    class A:
        @profile(device="cpu")
        def m(self):
            return 1

    a = A()
    a.m()
    reference = weakref.ref(a)
    del a
    assert reference() is None


def test_a_def_that_runs_again_shares_one_profiler():
    def make(size):
        @profile
        def inner():
            return allocate(size)

        return inner

    before = len(decorators._profilers)
    made = [make(size) for size in (10, 20, 30)]
    assert len(decorators._profilers) == before + 1
    for function in made:
        function()
    (function,) = decorators._profilers[-1].records().functions
    assert (function.calls, function.lines[-1].hits, function.lines[-1].stats["cpu"].gross_bytes) == (3, 3, 60)
    free(60)


def test_the_same_function_shown_in_two_ways_has_two_profilers():
    def f():
        return None

    before = len(decorators._profilers)
    profile(f), profile(f, columns="hits"), profile(f, device="cpu"), profile(f)
    assert len(decorators._profilers) == before + 3


@settrace_only
def test_the_hook_is_installed_as_long_as_an_entry_lives():
    before, entries = sys.gettrace(), []
    _native.enter(entries)
    _native.enter(entries)
    hook = sys.gettrace()
    assert type(hook).__name__ == "Hook" and [type(entry).__name__ for entry in entries] == ["Entry", "Entry"]
    del entries[0]
    assert sys.gettrace() is hook
    del entries[:]
    assert sys.gettrace() is before
    with pytest.raises(TypeError):
        _native.enter(())


@pytest.mark.parametrize("shape", ["no arguments", "positional", "keyword only", "star", "double", "all"])
def test_calls_of_every_shape_are_counted_and_leave_the_trace_function_as_it_was(shape, capsys):
    functions = {
        "no arguments": (lambda: 1, (), {}),
        "positional": (lambda a, b: a + b, (1, 2), {}),
        "keyword only": (lambda *, a: a, (), {"a": 1}),
        "star": (lambda *a: a, (1, 2), {}),
        "double": (lambda **a: a, (), {"x": 1}),
        "all": (lambda a, *b, c, **d: (a, b, c, d), (1, 2), {"c": 3, "d": 4}),
    }
    function, args, kwargs = functions[shape]
    every, before = profile_every(2)(function), sys.gettrace()
    assert [every(*args, **kwargs) for _ in range(4)] == [function(*args, **kwargs)] * 4
    assert sys.gettrace() is before
    assert capsys.readouterr().out.count("## test_calls") == 2
