"""What autograd keeps for backward, by line; and that the program does not notice that it is counted."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from gpu_device import environment, gpu
from made_up_snapshots import SavedCode, SavedLine, code_named, line, stats
from made_up_snapshots import made_up_records as records_from_rows
from run_program import SUPPORT, run_program

from pytorch_memlab_c import LineProfiler, LineRecords, profile
from pytorch_memlab_c.line_profiler.holder_book import HolderBook
from pytorch_memlab_c.line_profiler.profiler import decorator_profiler

CASES = SUPPORT / "saved_cases.py"
N = 128 * 128 * 4
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

#: {case: {line: (saved, of one run, parameters, inputs, in backward, hooks)}}, in tensors of N bytes.
EXPECTED = {
    "results_and_factors": {
        "a = x * w": (0, 0, 0, 1, 0, 0),  # the gradient of w needs x alone
        "b = a.exp()": (1, 1, 0, 0, 0, 0),  # its result
        "c = a * b": (1, 1, 0, 0, 0, 0),  # a; b is counted already
    },
    "each_storage_once": {
        "a = w.exp()": (1, 1, 0, 0, 0, 0),
        "b = a * a[:64].repeat(2, 1)": (1, 1, 0, 0, 0, 0),
    },
    "in_place": {"a.relu_()": (1, 1, 0, 0, 0, 0), "a.mul_(matrix())": (1, 1, 0, 0, 0, 0)},
    "no_grad": {},
    "nothing_requires_grad": {},
    "custom_function": {"b = Doubled.apply(a)": (2, 2, 0, 0, 0, 0)},
    "parameters_made_inside": {"y = layer(x)": (0, 0, 2, 0, 0, 0)},
    "layers": {"hidden = (x * w).exp()": (8, 2, 1, 0, 0, 0)},
    "accumulation": {"hidden = (x * w).exp()": (4, 2, 1, 0, 0, 0)},
    "hooks_of_the_program": {"a = w.exp()": (0, 0, 0, 0, 0, 1), "b = a.sin()": (1, 1, 0, 0, 0, 0)},
}
CHECKPOINTED = "x = checkpoint(block, x, w, use_reentrant=reentrant)"
INSIDE = "hidden = (x * w).exp()"


def in_tensors(rows):
    """Without lines that save less than a tensor: scalars."""
    counted = {text.partition("#")[0].strip(): tuple(v // N for v in values) for text, values in rows.items()}
    return {text: values for text, values in counted.items() if any(values)}


def check(values, waits):
    for case, expected in EXPECTED.items():
        assert in_tensors(values[case]) == expected, case
    for case in ("checkpoint_reentrant", "checkpoint_not_reentrant"):
        rows = in_tensors(values[case])
        assert rows[CHECKPOINTED] == (4, 1, 1, 0, 0, 0)
        assert rows[waits][4] == 1  # recomputed, one layer at a time
    assert in_tensors(values["checkpoint_not_reentrant"])[INSIDE][5] == 8
    assert values["two_profilers"] == [{"a = w.exp()": [N, N, 0, 0, 0, 0]}] * 3
    sums = values["sums"]
    assert sums["saved"] == sums["held"] - sums["output"] > 10 * N and sums["after"] == 0
    assert sums["parameters"] > 0


@needs_torch
def test_cases_on_cpu_tensors(tmp_path):
    check(run_program(CASES.read_text(), tmp_path, command=["program.py", "cpu"]).values, INSIDE)


@gpu()
def test_cases_on_a_gpu(tmp_path):
    """Autograd's own threads are not traced: what they save again is the line's that waits for them."""
    program = CASES.read_text()
    run = run_program(program, tmp_path, command=["program.py", "cuda:0"], env=environment())
    check(run.values, "loss.backward()")


INVISIBLE = """
import gc, sys, warnings, weakref
import torch
from torch.utils.checkpoint import checkpoint
from program_support import report
from pytorch_memlab_c import LineProfiler, _native, profile
from pytorch_memlab_c.engine import following

following.prepare()

def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))

def step(net, x):
    h = net(x)
    h = h * torch.sigmoid(h)
    h = checkpoint(torch.tanh, h, use_reentrant=False)
    loss = h.square().mean()
    loss.backward()
    return loss

def trained(context):
    net, x = model(), torch.ones(8, 64)
    gc.collect()
    before = _native.levels(0)[3:]
    with context:
        losses = [step(net, x) for _ in range(3)]
    counts = [b - a for a, b in zip(before, _native.levels(0)[3:])]
    return [p.grad.tolist() for p in net.parameters()], counts

import contextlib
plain = trained(contextlib.nullcontext())
saved = LineProfiler(step, device="cpu", saved=True)
report(same=plain == trained(saved), allocated=plain[1])

def in_place():
    w = torch.ones(4, requires_grad=True)
    y = w.exp()
    y.add_(1)
    y.sum().backward()

def error(function):
    try:
        function()
    except RuntimeError as e:
        return str(e)

with LineProfiler(in_place, device="cpu", saved=True):
    message = error(in_place)
report(message=message == error(in_place), text=message)

def graph():
    w = torch.ones(4, requires_grad=True)
    y = w.exp()
    node = y.grad_fn
    return y, node._saved_result, node._raw_saved_result, weakref.ref(y)

with LineProfiler(graph, device="cpu", saved=True) as p:
    y, result, raw, alive = graph()
    report(shares=result.data_ptr() == y.data_ptr(), version=result._version, hookable=raw.unpack_hook is None)
    del y, result, raw
    report(kept=alive() is not None)

def second():
    w = torch.full((4,), 2.0, requires_grad=True)
    (g,) = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), w)
    return h.tolist()

with LineProfiler(second, device="cpu", saved=True) as p:
    report(second=second())

def functorch():
    f = lambda x: (x.sin() ** 2).sum()
    return torch.func.grad(f)(torch.zeros(3)).tolist(), torch.func.vmap(torch.func.grad(f))(torch.zeros(2, 3)).tolist()

with LineProfiler(functorch, device="cpu", saved=True) as p:
    report(functorch=functorch())

def odd_tensors():
    sparse = torch.eye(3).to_sparse().requires_grad_()
    torch.sparse.sum(sparse * 2).backward()
    meta = torch.ones(3, device="meta", requires_grad=True)
    (meta.exp() * meta).sum()
    empty = torch.ones(0, requires_grad=True)
    (empty.exp() * empty).sum().backward()
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode():
        fake = torch.ones(3, requires_grad=True)
        (fake.exp() * fake).sum().backward()
    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    seen = []
    sub = torch.ones(4).as_subclass(Sub).requires_grad_()
    product = sub * sub
    count = len(seen)
    product.exp()
    return len(seen) - count, count

plain = odd_tensors()
with LineProfiler(odd_tensors, device="cpu", saved=True) as p:
    report(odd=odd_tensors() == plain)

@profile(saved=True, device="cpu")
def outer(w):
    return inner(w.exp())

@profile(saved=True, device="cpu")
def inner(x):
    return (x * x).sin().sum()

for _ in range(2):
    outer(torch.ones(1000, requires_grad=True)).backward()
from pytorch_memlab_c.line_profiler import decorators
frames = [q.to_dataframe(kind="saved") for q in decorators._profilers]
report(decorated={row.code.strip(): [int(row["saved"]), int(row["saved.total"])] for f in frames for _,
    row in f.iterrows()})

import threading
def work(n):
    for _ in range(50):
        w = torch.ones(n, requires_grad=True)
        y = (w.exp() * w).sum()
        y.backward()

with LineProfiler(work, device="cpu", saved=True) as p:
    threads = [threading.Thread(target=work, args=(1000,)) for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
report(threads=int(p.to_dataframe(kind="saved")["saved.total"].sum()))
decorators._profilers.clear()
"""


@needs_torch
def test_the_program_does_not_notice(tmp_path):
    run = run_program(INVISIBLE, tmp_path)
    values = run.values
    assert values["same"] and values["allocated"][0] > 0  # gradients, bytes and number of allocations
    assert values["message"] and "modified by an inplace operation" in values["text"]
    assert values["shares"] and values["version"] == 0 and values["hookable"] and not values["kept"]
    assert values["second"] == [12.0] * 4
    assert values["functorch"] == [[0.0] * 3, [[0.0] * 3] * 2]
    assert values["odd"]
    assert values["decorated"] == {"return inner(w.exp())": [4000, 8000], "return (x * x).sin().sum()": [4000, 8000]}
    assert values["threads"] == 4 * 50 * 4000
    assert run.stderr == ""


# ---- without PyTorch ----


def made_up_records():
    code = code_named("forward")
    first = line(1, 0, 1, stats(9000, 0))
    second = line(2, 3, 1, stats(9000, 0))
    figures = (4096, 2048, 8192, 1024, 512, 0, 0)
    return records_from_rows([(code, 1, [first, second])], saved=[SavedCode(code, [SavedLine(2, 1, *figures)])])


def test_it_is_shown_in_text_html_json_and_columns():
    records = made_up_records()
    text = records.to_text()
    assert "## Saved for backward, cuda:0: 4.00K of activations" in text
    assert text.splitlines()[3].split()[:7] == ["4.00K", "2.00K", "512.00B", "1.00K", "<made-up>:2", "in", "forward"]
    assert "Saved for backward" in records.to_html()
    assert LineRecords.from_json(records.to_json()) == records
    frame = records.to_dataframe(columns=["saved", "saved.total", "saved.parameters"])
    assert [int(value) for value in frame.iloc[-1][:3]] == [4096, 8192, 1024]
    assert int(records.to_dataframe(kind="saved")["saved.inputs"].iloc[0]) == 512


def test_columns_that_were_not_counted_are_told():
    code = code_named("forward")
    records = records_from_rows([(code, 1, [line(2, 1, 1, stats())])])
    for ask in (lambda: records.to_dataframe(kind="saved"), lambda: records.to_dataframe(columns="saved.run")):
        with pytest.raises(ValueError, match=r"LineProfiler\(\.\.\., saved=True\)"):
            ask()


def test_columns_of_a_profiler_that_counts_are_chosen_later_too():
    profiler = LineProfiler(saved=True)
    profiler.columns = ["saved", "net"]
    assert profiler.columns == ("saved", "net")
    with pytest.raises(ValueError, match=r"saved=True"):
        LineProfiler().columns = ["saved"]


def test_decorating_the_same_function_with_and_without():
    def function():
        pass

    profile(saved=True)(function)
    profile(function)
    assert LineProfiler(function, saved=True).to_dataframe(kind="saved").empty


@gpu()
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_the_llama_example(tmp_path):
    """A Llama of one layer: what is saved is what the forward pass leaves, and checkpointing leaves the layer's
    input."""
    program = """
    import contextlib, io, sys
    sys.path.insert(0, EXAMPLES)
    import llama_saved
    from program_support import report
    from pytorch_memlab_c import LineProfiler, simulate
    if not simulate_is_on:
        simulate.enable("h100-80gb")
    import torch
    with contextlib.redirect_stderr(io.StringIO()):
        model = llama_saved.build(2)
    tokens = torch.zeros(1, 64, dtype=torch.long, device="cuda")
    def forward():
        return model(input_ids=tokens, labels=tokens).loss
    def account():
        forward()
        before = torch.cuda.memory_allocated()
        with LineProfiler(forward, *llama_saved.forward_functions(), device="cuda:0", saved=True) as profiler:
            loss = forward()
        frame = profiler.to_dataframe(kind="saved")
        held = torch.cuda.memory_allocated() - before
        lines = {code.strip(): int(value) for code, value in zip(frame["code"], frame["saved"]) if value}
        return held, int(frame["saved"].sum()), lines, int(frame["saved.hooks"].sum())
    plain = account()
    model.gradient_checkpointing_enable()
    report(plain=plain, checkpointed=account())
    """
    examples = Path(__file__).parents[2] / "examples"
    program = program.replace("EXAMPLES", repr(str(examples))).replace("simulate_is_on", repr(bool(environment())))
    values = run_program(program, tmp_path, env=environment()).values
    held, saved, lines, _ = values["plain"]
    assert held - saved == 512  # the loss
    assert max(lines, key=lines.__getitem__).startswith("down_proj")
    held, saved, lines, hooks = values["checkpointed"]
    cosine_and_sine, mask, positions = 2 * 64 * 128 * 2, 64 * 64, 512  # arguments that the checkpoint itself holds
    assert held - saved == 512 + cosine_and_sine + mask + positions
    assert lines["hidden_states = decoder_layer("] == 2 * 64 * 4096 * 2
    assert hooks > saved


def test_columns_named_before_the_run_ask_for_it() -> None:
    """Given to a profiler, a decorator, or the command line's and the notebook's ``-c``."""

    def one() -> int:
        return 1

    for profiler in (
        LineProfiler(one, columns=["hits", "saved.total"]),
        decorator_profiler("saved", None, HolderBook()),
    ):
        assert profiler.records().saved
        profiler.columns = ("net", "saved")
        assert profiler.columns == ("net", "saved")
    assert not LineProfiler(one, columns="hits").records().saved
