"""Public reports about single lines (cases 21 to 30): hits, peaks and net growth where others lost or doubled them."""

from __future__ import annotations

import os

import pytest
from program_support import Block, Line, allocate, column, free, hits, level, lines, nets, peaks
from run_program import run_program

from pytorch_memlab_c import LineProfiler


def run_under_profiler(function, *arguments, **named):
    with LineProfiler(function, device="cpu") as profiler:
        function(*arguments, **named)
    return profiler


# ---- 21: a statement over several lines ----


def test_case_21_a_multi_line_call_keeps_its_bytes():
    def model(x, scale):
        allocate(1000)
        free(400)
        return x * scale

    def f(kwargs):
        result = model(
            Block(10).size,
            **kwargs,
        )
        free(600)
        return result

    before = level()
    profiler = run_under_profiler(f, {"scale": 2})
    shown = lines(profiler)
    first = shown["result = model("]
    assert first.peak == before + 1000
    assert first.net == 600
    assert first.allocated == 1000
    assert sum(line.net for line in shown.values()) == 0
    assert sum(line.allocated for line in shown.values()) == 1010
    assert shown["Block(10).size,"].peak == before + 10


def test_case_21_a_model_called_over_several_lines():
    torch = pytest.importorskip("torch")

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch.nn.Linear(1000, 500)

        def forward(self, x, **kw):
            out = self.model(
                x,
                **kw,
            )
            return out

    outer, x = Outer(), torch.ones(100, 1000)
    outer(x)
    before = level()
    with LineProfiler(Outer.forward, device="cpu") as profiler, torch.no_grad():
        out = outer(x)
    shown = lines(profiler)
    assert out.shape == (100, 500)
    assert shown["out = self.model("].net == 100 * 500 * 4
    assert shown["out = self.model("].peak >= before + 100 * 500 * 4
    assert shown["x,"].net == 0
    assert shown["x,"].peak == before


# ---- 22: if and elif ----


def test_case_22_each_branch_of_an_elif_chain_has_its_true_hits():
    def f(x):
        if x == 0:
            return allocate(1)
        elif x == 1:
            return allocate(2)
        elif x == 2:
            return allocate(4)
        else:
            return allocate(8)

    before = level()
    with LineProfiler(f, device="cpu") as profiler:
        for x in [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]:
            f(x)
    assert hits(profiler) == {
        "if x == 0:": 10,
        "return allocate(1)": 1,
        "elif x == 1:": 9,
        "return allocate(2)": 2,
        "elif x == 2:": 7,
        "return allocate(4)": 3,
        "return allocate(8)": 4,
    }
    assert nets(profiler)["return allocate(8)"] == 32
    free(level() - before)


# ---- 23: a line in an except block that is not taken ----


@pytest.mark.parametrize("flag", [False, True])
def test_case_23_no_bytes_on_a_line_not_taken(flag):
    def g():
        allocate(500)
        raise KeyError

    def f(flag):
        try:
            g()
        except KeyError:
            if flag:
                free(500)
        return allocate(3)

    before = level()
    profiler = run_under_profiler(f, flag)
    shown = lines(profiler)
    assert shown["g()"][:3] == (1, before + 500, 500)
    assert hits(profiler)["if flag:"] == 1
    if flag:
        assert shown["free(500)"][:3] == (1, before + 500, -500)
    else:
        assert nets(profiler).get("free(500)", 0) == 0
    assert shown["return allocate(3)"][:3] == (1, level(), 3)
    free(level() - before)


# ---- 24: instructions without a line number, code without a function around it ----


def test_case_24_comprehensions_lambdas_and_decorators():
    def decorate(function):
        allocate(1)
        free(1)
        return function

    def f():
        squares = [Block(i) for i in range(1, 4)]
        total = sum(map(lambda block: block.size, squares))

        @decorate
        @decorate
        def inner():
            return total

        with open(os.devnull) as file, open(os.devnull):
            names = {name: 1 for name in (file.name,)}
        return inner(), [*names]

    before = level()
    profiler = run_under_profiler(f)
    shown = lines(profiler)
    assert shown["squares = [Block(i) for i in range(1, 4)]"].peak == before + 6
    assert shown["squares = [Block(i) for i in range(1, 4)]"].net == 6
    assert shown["@decorate"].hits >= 1
    assert level() == before


def test_case_24_a_lambda_is_a_function_of_one_line():
    f = lambda size: [Block(size), Block(size)]  # noqa: E731
    before = level()
    profiler = run_under_profiler(f, 100)
    (row,) = profiler.records().functions[0].lines
    assert (row.hits, row.stats["cpu"][2], row.stats["cpu"][8]) == (1, before + 200, 200)


def test_case_24_the_code_of_a_module():
    source = "data = [allocate(i) for i in (1, 2)]\nfor size in data: free(size)\n"
    code = compile(source, "<module text>", "exec")
    from types import FunctionType

    before = level()
    profiler = run_under_profiler(FunctionType(code, {"allocate": allocate, "free": free}))
    shown = lines(profiler)
    assert shown["1"][1:3] == (before + 3, 3)
    assert shown["2"].net == -3


# ---- 25: loops ----


def test_case_25_a_list_that_grows_in_a_loop():
    def f():
        kept = []
        for i in range(1, 6):
            kept.append(Block(100 * i))
        return len(kept)

    before = level()
    profiler = run_under_profiler(f)
    row = lines(profiler)["kept.append(Block(100 * i))"]
    assert row == Line(5, before + 1500, 1500, 100, 500, 500, 1500, 5)
    assert level() == before


def test_case_25_a_loop_that_allocates_and_frees():
    def f():
        for _ in range(5):
            allocate(744)
            free(744)

    before = level()
    profiler = run_under_profiler(f)
    assert lines(profiler)["allocate(744)"] == Line(5, before + 744, 5 * 744, 744, 744, 744, 5 * 744, 5)
    assert lines(profiler)["free(744)"] == Line(5, before + 744, -5 * 744, -744, -744, -744, 0, 0)
    assert sum(nets(profiler).values()) == 0


def test_case_25_a_line_that_rebinds_grows_only_the_first_time():
    def f():
        block = None
        for _ in range(4):
            block = Block(100)
        return block.size

    before = level()
    row = lines(run_under_profiler(f))["block = Block(100)"]
    assert row == Line(4, before + 200, 100, 100, 100, 0, 400, 4)


def test_case_25_net_of_a_hundred_thousand_runs():
    def f(n):
        for i in range(n):
            allocate(i)
            free(i)

    n = 100_000
    row = lines(run_under_profiler(f, n))["allocate(i)"]
    assert (row.hits, row.net, row.net_max) == (n, n * (n - 1) // 2, n - 1)


# ---- 26, 27 and 30: what a callee does belongs to the calling line, once ----


def test_case_26_a_line_that_calls_a_profiled_function_shows_the_bytes_during_the_call():
    def inner():
        block = Block(1000)
        other = Block(500)
        del block
        return other

    def outer():
        kept = Block(10_000)
        result = inner()
        return kept.size + result.size

    before = level()
    with LineProfiler(inner, outer, device="cpu") as profiler:
        outer()
    row = lines(profiler, outer.__qualname__)["result = inner()"]
    assert row[:3] == (1, before + 11_500, 500)
    assert (row.allocated, row.allocations) == (1500, 2)
    assert peaks(profiler, inner.__qualname__) == {
        "block = Block(1000)": before + 11_000,
        "other = Block(500)": before + 11_500,
        "del block": before + 11_500,
        "return other": before + 10_500,
    }


def test_case_27_the_peak_of_a_line_is_that_of_all_of_it():
    def inner():
        allocate(1000)
        free(1000)

    def outer():
        x = Block(4000); free(4000); inner(); allocate(4000)  # fmt: skip # noqa: E702
        return x.size

    before = level()
    with LineProfiler(inner, outer, device="cpu") as profiler:
        outer()
    (row,) = [line for text, line in lines(profiler, outer.__qualname__).items() if text.startswith("x = ")]
    assert row[:3] == (1, before + 4000, 4000)  # not the 1000 that came after inner's last line
    assert peaks(profiler, inner.__qualname__)["allocate(1000)"] == before + 1000


def test_case_27_a_peak_before_between_and_after_profiled_calls():
    def inner():
        allocate(10)
        free(10)

    def outer(first, second, third):
        f(first), inner(), f(second), inner(), f(third)

    def f(size):
        allocate(size)
        free(size)

    for sizes in ((900, 1, 1), (1, 900, 1), (1, 1, 900)):
        before = level()
        with LineProfiler(inner, outer, device="cpu") as profiler:
            outer(*sizes)
        text = "f(first), inner(), f(second), inner(), f(third)"
        assert lines(profiler, outer.__qualname__)[text][:3] == (1, before + 900, 0)
        assert peaks(profiler, inner.__qualname__)["allocate(10)"] == before + 10


def test_case_27_a_peak_in_the_callees_last_line():
    def inner():
        pass
        allocate(1000), free(1000)

    def innermost():
        allocate(3000), free(3000)

    def outer():
        inner()
        inner(), innermost()

    before = level()
    with LineProfiler(inner, innermost, outer, device="cpu") as profiler:
        outer()
    assert peaks(profiler, outer.__qualname__) == {"inner()": before + 1000, "inner(), innermost()": before + 3000}


def test_case_27_disabled_inside_the_callee():
    def inner():
        allocate(1000), free(1000), profiler.disable()
        allocate(9000), free(9000)

    def outer():
        inner()
        allocate(5000), free(5000)

    before = level()
    profiler = LineProfiler(inner, outer, device="cpu")
    profiler.enable()
    outer()
    assert peaks(profiler, outer.__qualname__) == {"inner()": before + 1000}
    assert peaks(profiler, inner.__qualname__) == {"allocate(1000), free(1000), profiler.disable()": before + 1000}
    with profiler:
        outer()  # ends at `profiler.disable()` again
    assert hits(profiler, outer.__qualname__) == {"inner()": 2}


def test_case_30_a_spike_inside_a_call_is_shown():
    def helper():
        block = Block(1_500_000_000)
        return block.size

    def f():
        size = helper()
        return size

    before = level()
    row = lines(run_under_profiler(f))["size = helper()"]
    assert row == Line(1, before + 1_500_000_000, 0, 0, 0, 0, 1_500_000_000, 1)


# ---- 28: several calls are not added up ----


def test_case_28_the_peak_of_five_calls_is_that_of_one():
    def f():
        block = Block(4_000_000_000)
        return block.size

    before = level()
    with LineProfiler(f, device="cpu") as profiler:
        for _ in range(5):
            f()
    row = lines(profiler)["block = Block(4_000_000_000)"]
    assert row.peak == before + 4_000_000_000
    assert (row.allocated, row.allocations) == (20_000_000_000, 5)
    assert level() == before


# ---- 29: the first run apart from the later ones ----


def test_case_29_optimizer_state_and_a_leak_look_different():
    def train():
        state, leaked = {}, []
        for step in range(5):
            state.setdefault("moments", Block(800) if "moments" not in state else None)
            leaked.append(Block(30))
            del step
        return len(leaked) + len(state)

    shown = lines(run_under_profiler(train))
    (state,) = [line for text, line in shown.items() if text.startswith("state.setdefault")]
    leak = shown["leaked.append(Block(30))"]
    assert (state.net_first, state.net_max, state.net_last, state.net) == (800, 800, 0, 800)
    assert (leak.net_first, leak.net_max, leak.net_last, leak.net) == (30, 30, 30, 150)


def test_case_29_the_columns_can_be_shown():
    def f():
        for size in (800, 0, 0):
            allocate(size)
        free(800)

    profiler = run_under_profiler(f)
    columns = ["net.first", "net.max", "net.last", "net", "allocated", "allocations", "runs", "hits"]
    frame = profiler.to_dataframe(columns=columns)
    row = frame[frame["code"].str.strip() == "allocate(size)"].iloc[0]
    # `allocate(0)` is no allocation
    assert [row[name] for name in columns] == [800, 800, 0, 800, 800, 1, 3, 3]


def test_case_29_a_real_optimizer():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(100, 100, bias=False)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    def train(x):
        for _ in range(5):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    shown = lines(run_under_profiler(train, torch.ones(1, 100)))
    step, backward = shown["optimizer.step()"], shown["model(x).sum().backward()"]
    assert step.net_first == 2 * 40_000 + 4  # two moments and the step counter
    assert step.net_last == 0
    assert step.net == step.net_first
    assert (backward.net_first, backward.net_last, backward.net) == (40_000, 40_000, 200_000)  # the gradient
    assert shown["optimizer.zero_grad(set_to_none=True)"].net == -200_000


# ---- what a line is, in general (spec.md 1) ----


def test_the_row_of_the_def_line_shows_the_values_at_entry():
    def f():
        allocate(100)
        free(100)

    kept = Block(5000)
    before = level()
    profiler = run_under_profiler(f)
    entry = lines(profiler)["def f():"]
    assert entry[:3] == (0, before, 0)
    assert kept.size == 5000
    frame = profiler.to_dataframe()
    assert frame["tensor_bytes.peak"].tolist() == [before, before + 100, before + 100]
    assert frame["hits"].tolist() == [0, 1, 1]


def test_a_line_that_ran_before_anything_was_allocated_shows_zero(tmp_path):
    run = run_program(
        """
        from pytorch_memlab_c import LineProfiler
        from program_support import allocate, report
        def f():
            x = 1
            allocate(100)
            if x == 2:
                allocate(1)
        def g():
            pass
        with LineProfiler(f, g, device="cpu") as profiler:
            g()
            f()
        values = [profiler.to_dataframe(n)["tensor_bytes.peak"].astype(object) for n in "fg"]
        report(f=[None if v != v else v for v in values[0].fillna(-1)], g=list(values[1].fillna(-1)))
        """,
        tmp_path,
    )
    assert run.values["f"] == [0, 0, 100, 100, -1]
    assert run.values["g"] == [0, 0]


def test_a_frame_that_unwinds_closes_its_line():
    def inner():
        block = Block(1000)
        raise KeyError(block.size)

    def f():
        try:
            inner()
        except KeyError as error:
            size = error.args[0]
        return size

    before = level()
    with LineProfiler(inner, f, device="cpu") as profiler:
        assert f() == 1000
    assert lines(profiler, inner.__qualname__)["raise KeyError(block.size)"][:3] == (1, before + 1000, 0)
    assert lines(profiler, f.__qualname__)["inner()"][:3] == (1, before + 1000, 1000)
    assert level() == before


def test_the_last_line_of_a_function_that_frees_its_locals_on_return():
    def f():
        block = Block(1000)
        return block.size

    before = level()
    # The RETURN event comes before the frame lets its locals go.
    assert lines(run_under_profiler(f))["return block.size"].peak == before + 1000


def test_a_line_with_several_statements_is_one_line():
    def f():
        a = Block(10); b = Block(20); del a; c = Block(30); return b.size + c.size  # fmt: skip # noqa: E702

    before = level()
    (row,) = [line for text, line in lines(run_under_profiler(f)).items() if text.startswith("a = ")]
    assert row[:2] == (1, before + 50)


def test_a_function_of_one_line_has_no_run_more_for_its_entry():
    def f(size): return Block(size)  # fmt: skip # noqa: E704

    profiler = LineProfiler(f, device="cpu")
    with profiler:
        held = [f(100), f(50), f(20)]
    (line,) = lines(profiler).values()
    assert (line.hits, line.net, line.net_first, line.net_last) == (3, sum(x.size for x in held), 100, 20)
    assert profiler.records().functions[0].lines[0].stats["cpu"].runs == 3


def test_a_frame_under_a_class_body_and_a_with_statement():
    class Manager:
        def __enter__(self):
            self.block = Block(100)

        def __exit__(self, *exc):
            del self.block

    def f():
        with Manager():
            allocate(7)
        free(7)

    before = level()
    shown = lines(run_under_profiler(f))
    assert shown["with Manager():"].net == 0  # entered and left on this line
    assert shown["with Manager():"].peak == before + 107
    assert shown["allocate(7)"][:3] == (1, before + 107, 7)


def test_tensors_on_the_cpu_are_exact_by_line():
    torch = pytest.importorskip("torch")

    def f():
        a = torch.ones(1000, 1000)
        b = a.double()
        c = a[:10].view(-1)
        del b
        d = torch.zeros(3, dtype=torch.uint8).clone()
        return c.shape, d.shape

    before = level()
    profiler = run_under_profiler(f)
    assert column(profiler, "allocated") == {
        "def f():": 0,
        "a = torch.ones(1000, 1000)": 4_000_000,
        "b = a.double()": 8_000_000,
        "c = a[:10].view(-1)": 0,
        "del b": 0,
        "d = torch.zeros(3, dtype=torch.uint8).clone()": 6,
        "return c.shape, d.shape": 0,
    }
    assert peaks(profiler) == {
        "a = torch.ones(1000, 1000)": before + 4_000_000,
        "b = a.double()": before + 12_000_000,
        "c = a[:10].view(-1)": before + 12_000_000,
        "del b": before + 12_000_000,
        "d = torch.zeros(3, dtype=torch.uint8).clone()": before + 4_000_006,
        "return c.shape, d.shape": before + 4_000_003,
    }
    assert level() == before
