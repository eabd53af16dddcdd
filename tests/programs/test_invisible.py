"""The program under the profiler computes, allocates and frees as without it; nothing is kept alive."""

from __future__ import annotations

import sys

import pytest
from program_support import Block, level
from run_program import run_program

from pytorch_memlab_c import LineProfiler, profile, profile_every

# ---- import ----


def test_import_prints_nothing_and_imports_neither_torch_nor_pandas(tmp_path):
    run = run_program(
        """
        import sys
        import pytorch_memlab_c
        from program_support import report
        report(loaded=[name for name in ("torch", "pandas", "numpy", "IPython", "jinja2") if name in sys.modules],
               trace=sys.gettrace() is None)
        """,
        tmp_path,
    )
    assert run.values == {"loaded": [], "trace": True}
    assert run.stdout == run.stderr == ""


@pytest.mark.parametrize("form", ["@profile", "@profile_every(10)", ""])
def test_a_program_without_torch_runs(tmp_path, form):
    run = run_program(
        f"""
        import sys
        sys.modules["torch"] = None      # importing it fails
        from pytorch_memlab_c import LineProfiler, profile, profile_every
        {form}
        def f():
            return 5
        with LineProfiler(f) as profiler:
            assert f() == 5
        profiler.records()
        """,
        tmp_path,
    )
    assert run.stderr == ""


def test_torch_imported_after_the_profiler_was_enabled(tmp_path):
    pytest.importorskip("torch")
    run = run_program(
        """
        from pytorch_memlab_c import LineProfiler, profile
        from program_support import decorated, lines, report

        @profile(device="cpu")
        def f():
            import torch
            x = torch.ones(1000)
            return x.shape

        f()          # PyTorch comes inside the first call: it is followed from the next one on
        f()
        report(peak=decorated("f").records().functions[0].calls,
            net=lines(decorated("f"))["x = torch.ones(1000)"].net_last)
        """,
        tmp_path,
    )
    assert run.values == {"peak": 2, "net": 4000}


# ---- arguments are let go as without the profiler ----


def letting_go():
    """Functions that let their arguments go, each with a call that hands over the only reference."""

    def positional(a, b):
        del a
        first = level()
        b = None
        return first, level(), b

    def positional_only(a, /, b):
        del a
        b = None
        return level(), b

    def keyword_only(*, a, b=None):
        del a
        return level(), b

    def default(a, b=3):
        a = None
        return level(), a, b

    def star(*rest):
        del rest
        return level()

    def star_after_one(a, *rest):
        del a
        first = level()
        del rest
        return first, level()

    def double_star(**named):
        named.clear()
        return level()

    def everything(a, /, b, *rest, c, **named):
        levels = [level()]
        del a
        levels.append(level())
        b = None
        levels.append(level())
        del rest
        levels.append(level())
        c = None
        levels.append(level())
        named.clear()
        levels.append(level())
        return levels, b, c

    def generator(a, b):
        del a
        yield level()
        b = None
        yield level(), b

    def never_let_go(a):
        return level(), a.size

    return {
        "positional": (positional, lambda f: f(Block(100), Block(20))),
        "positional_only": (positional_only, lambda f: f(Block(100), b=Block(20))),
        "keyword_only": (keyword_only, lambda f: f(a=Block(100))),
        "default": (default, lambda f: f(Block(100))),
        "star": (star, lambda f: f(Block(100), Block(20))),
        "star_after_one": (star_after_one, lambda f: f(Block(100), Block(20), Block(3))),
        "double_star": (double_star, lambda f: f(x=Block(100), y=Block(20))),
        "everything": (everything, lambda f: f(Block(1), Block(10), Block(100), c=Block(1000), d=Block(10000))),
        "generator": (generator, lambda f: list(f(Block(100), Block(20)))),
        "never_let_go": (never_let_go, lambda f: f(Block(100))),
    }


@pytest.mark.parametrize("name", letting_go())
@pytest.mark.parametrize(
    "decorate", [profile(device="cpu"), profile_every(10**9, device="cpu")], ids=["profile", "every"]
)
def test_arguments_are_freed_as_without_the_decorator(name, decorate):
    function, call = letting_go()[name]
    before = level()
    plain = call(function)
    assert level() == before
    assert call(decorate(function)) == plain
    assert level() == before
    with LineProfiler(function, device="cpu"):
        assert call(function) == plain
    assert level() == before


@pytest.mark.parametrize("decorate", [lambda f: f, profile(device="cpu")], ids=["plain", "profile"])
def test_a_coroutine_lets_its_arguments_go(decorate):
    import asyncio

    @decorate
    async def f(a, *, b):
        del a
        await asyncio.sleep(0)
        first = level()
        del b
        await asyncio.sleep(0)
        return first, level()

    async def main():
        return await f(Block(100), b=Block(20))

    before = level()
    assert asyncio.run(main()) == (before + 20, before)


def test_a_return_value_is_held_by_nobody_else():
    def f():
        return Block(100)

    before, counts = level(), []
    for function in (f, profile(f, device="cpu"), profile_every(10**9)(f)):
        function()
        assert level() == before
        result = function()
        counts.append(sys.getrefcount(result))
        del result
        assert level() == before
    assert counts[0] == counts[1] == counts[2]


def test_peaks_of_a_program_are_the_same_with_and_without(tmp_path):
    """The highest level inside, sampled at each allocation, of a program that lets go what it can."""
    torch = pytest.importorskip("torch")
    del torch
    source = """
        import torch
        from pytorch_memlab_c import LineProfiler, _native, profile
        from pytorch_memlab_c.engine import following
        from program_support import report
        following.prepare()
        DECORATE

        @decorate
        def block(x, *, scale):
            y = x * scale
            del x
            z = y.relu()
            y = None
            return z * 2

        @decorate
        def network(x, depth):
            for _ in range(depth):
                x = block(x, scale=2.0)
            return x

        @decorate
        def step(model, x):
            loss = model(network(x, 3)).square().mean()
            loss.backward()
            return loss.item()

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        class Window:            # the highest level, by a profiler of its own around all
            pass
        def run():
            return [step(model, torch.rand(256, 64)) for _ in range(3)]
        before = _native.levels(0)[1]
        with LineProfiler(run, device="cpu") as around:
            losses = run()
        (line,) = [l for l in around.records().functions[0].lines if l.hits]
        stats = line.stats["cpu"]
        report(losses=losses, peak=stats[2] - before, gross=stats[11], count=stats[12],
            after=_native.levels(0)[1] - before,
               rng=torch.get_rng_state().sum().item(), grad=[p.grad.sum().item() for p in model.parameters()])
        """
    found = []
    for name, decorate in {
        "plain": "decorate = lambda f: f",
        "profile": "decorate = profile(device='cpu')",
        "twice": "decorate = lambda f: profile(profile(f))",
    }.items():
        directory = tmp_path / name
        directory.mkdir()
        found.append(run_program(source.replace("DECORATE", decorate), directory).values)
    assert found[0] == found[1] == found[2]
    assert found[0]["peak"] > 0


# ---- exceptions, results, trace functions ----


def test_exceptions_are_the_same_objects_with_the_same_frames_of_the_program():
    import traceback

    class Odd(BaseException):
        pass

    def inner(error):
        raise error

    def f(error):
        try:
            inner(error)
        except Odd as odd:
            raise ValueError("outer") from odd

    for error in (Odd(), KeyError("x"), SystemExit(3), KeyboardInterrupt(), StopIteration(5), GeneratorExit()):
        caught = []
        for function in (f, profile(f, device="cpu"), profile_every(10**9)(f)):
            try:
                error.__traceback__ = None
                function(error)
            except BaseException as raised:  # noqa: B036
                own = [x.name for x in traceback.extract_tb(raised.__traceback__) if x.filename == __file__]
                caught.append(
                    (type(raised), raised.args, own[1:], raised.__cause__ is error, raised.__context__ is error)
                )
        assert caught[0] == caught[1] == caught[2]


def test_the_exception_that_is_handled_is_the_same_inside():
    def f():
        return sys.exc_info()[0]

    for function in (f, profile(f, device="cpu")):
        try:
            raise KeyError
        except KeyError:
            assert function() is KeyError
        assert function() is None


def test_gettrace_is_what_it_was(tmp_path):
    run = run_program(
        """
        import asyncio, sys
        from pytorch_memlab_c import LineProfiler, profile, profile_every
        from program_support import report

        def f(): return 1
        def raises(): raise KeyError
        def generator(): yield 1; yield 2
        async def coroutine(): await asyncio.sleep(0)
        async def asyncgen():
            yield 1
            await asyncio.sleep(0)

        def run_all(decorate):
            between = []
            decorate(f)()
            try: decorate(raises)()
            except KeyError: pass
            half_run = decorate(generator)()
            next(half_run)
            between.append(sys.gettrace())
            list(decorate(generator)())
            asyncio.run(decorate(coroutine)())
            async def consume():
                async for _ in decorate(asyncgen)():
                    between.append(sys.gettrace())
            asyncio.run(consume())
            return between + [sys.gettrace()]

        def tracer(frame, event, arg): return None

        ok = []
        for outer in (None, tracer):
            sys.settrace(outer)
            for decorate in (profile, profile_every(1000)):
                ok += [x is outer for x in run_all(decorate)]
            with LineProfiler(f, generator) as profiler:
                run_all(lambda function: function)
            ok.append(sys.gettrace() is outer)
            sys.settrace(None)
        report(ok=ok)
        """,
        tmp_path,
    )
    assert len(run.values["ok"]) == 2 * (2 * 3 + 1) and all(run.values["ok"])


def test_results_of_torch_are_the_same(tmp_path):
    pytest.importorskip("torch")
    source = """
        import torch
        from pytorch_memlab_c import profile
        from program_support import report
        DECORATE
        @decorate
        def step(model, optimizer, x):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean() + torch.rand(())
            loss.backward()
            optimizer.step()
            return loss.detach()
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(20, 20), torch.nn.Dropout(), torch.nn.Linear(20, 1))
        optimizer = torch.optim.AdamW(model.parameters())
        losses = [step(model, optimizer, torch.randn(8, 20)).item().hex() for _ in range(5)]
        report(losses=losses, parameters=[p.double().sum().item().hex() for p in model.parameters()])
        """
    found = []
    for name, decorate in {"plain": "decorate = lambda f: f", "profile": "decorate = profile"}.items():
        (tmp_path / name).mkdir()
        found.append(run_program(source.replace("DECORATE", decorate), tmp_path / name).values)
    assert found[0] == found[1]


def test_hooks_and_gradients_inside_a_profiled_backward():
    torch = pytest.importorskip("torch")

    @profile(device="cpu")
    def f(x):
        y = x * 2
        y.register_hook(lambda gradient: gradient * 3)
        return y.sum()

    x = torch.ones(4, requires_grad=True)
    f(x).backward()
    assert x.grad.tolist() == [6.0] * 4
