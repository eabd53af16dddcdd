"""What autograd keeps, case by case, on one device. Usage: saved_cases.py DEVICE; reports {case: values}.

Sizes are chosen so that a CUDA block is as large as the tensor: multiples of 512 bytes.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from program_support import report
from torch.utils.checkpoint import checkpoint

from pytorch_memlab_c import LineProfiler

DEVICE = sys.argv[1]
N = 128 * 128 * 4  # bytes of one tensor


def matrix(grad: bool = False) -> Any:
    return torch.rand(128, 128, device=DEVICE, requires_grad=grad)


def allocated() -> int:
    from pytorch_memlab_c import _native

    return _native.levels(0 if DEVICE == "cpu" else 1)[1]


def saved(*functions: Any, run: Any = None, **options: Any) -> dict[str, list[int]]:
    """{line's text: [saved, one run, parameters, inputs, backward, hooks]} of the lines that anything was saved on."""
    with LineProfiler(*functions, device=DEVICE, saved=True, **options) as profiler:
        (run or functions[0])()
    return rows(profiler)


def rows(profiler: Any) -> dict[str, list[int]]:
    frame = profiler.to_dataframe(kind="saved")
    names = ["saved", "saved.run", "saved.parameters", "saved.inputs", "saved.backward", "saved.hooks"]
    return {code.strip(): [int(v) for v in values] for code, values in zip(frame["code"], frame[names].values)}


CASES = []


def case(function: Any) -> Any:
    CASES.append(function)
    return function


@case
def results_and_factors() -> Any:
    x, w = matrix(), matrix(grad=True)

    def f() -> Any:
        a = x * w  # saves x and w
        b = a.exp()  # saves its result
        c = a * b  # a is new, b is counted already
        d = c + 1
        return d.sum()

    return saved(f)


@case
def each_storage_once() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        a = w.exp()
        b = a * a[:64].repeat(2, 1)
        c = a.t() * a.view(-1).view(128, 128)
        return (b + c).sum()

    return saved(f)


@case
def in_place() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        a = w * 2
        a.relu_()
        a.mul_(matrix())
        return a.sum()

    return saved(f)


@case
def no_grad() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        with torch.no_grad():
            return (w.exp() * w).sum()

    return saved(f)


@case
def nothing_requires_grad() -> Any:
    x = matrix()

    def f() -> Any:
        return (x.exp() * x).sum()

    return saved(f)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        result = x * 2
        ctx.save_for_backward(x, result)
        ctx.attribute = torch.ones_like(x)  # autograd does not know of it
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, result = ctx.saved_tensors
        return grad * 2 * ctx.attribute


@case
def custom_function() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        a = w + 1
        b = Doubled.apply(a)
        b.sum().backward()
        return b

    return saved(f)


@case
def parameters_made_inside() -> Any:
    def f() -> Any:
        layer = torch.nn.Linear(128, 128, bias=False, device=DEVICE)
        x = matrix(grad=True)
        y = layer(x)
        return y.sum()

    return saved(f)


def block(x: Any, w: Any) -> Any:
    hidden = (x * w).exp()
    return hidden.sin()


def stack(w: Any, layers: int, reentrant: Any = None) -> Any:
    x = w + 0
    for _ in range(layers):
        if reentrant is None:
            x = block(x, w)
        else:
            x = checkpoint(block, x, w, use_reentrant=reentrant)
    return x.sum()


@case
def layers() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        loss = stack(w, 4)
        loss.backward()

    return saved(f, block, stack)


@case
def accumulation() -> Any:
    """Several forwards and backwards in one call hold one forward's at a time."""
    w = matrix(grad=True)

    def f() -> Any:
        for _ in range(3):
            loss = stack(w, 2)
            loss.backward()

    return saved(f, block, stack)


@case
def checkpoint_reentrant() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        loss = stack(w, 4, True)
        loss.backward()

    return saved(f, block, stack)


@case
def checkpoint_not_reentrant() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        loss = stack(w, 4, False)
        loss.backward()

    return saved(f, block, stack)


@case
def hooks_of_the_program() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(DEVICE)):
            a = w.exp()
        b = a.sin()
        b.sum().backward()

    return saved(f)


@case
def two_profilers() -> Any:
    w = matrix(grad=True)

    def f() -> Any:
        a = w.exp()
        return a.sum()

    with LineProfiler(f, device=DEVICE, saved=True) as outer:
        f()
        with LineProfiler(f, device=DEVICE, saved=True) as inner:
            f()
        inner_rows = rows(inner)
        inner.clear()
        with inner:
            f()
    return [rows(outer), inner_rows, rows(inner)]


@case
def sums() -> Any:
    """What is saved is what a forward pass leaves allocated, but for its outputs."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True).to(DEVICE)
    x = torch.rand(4, 32, 128, device=DEVICE)

    def f() -> Any:
        a = layer(x)
        b = layer(a.tanh())
        return b.square()

    f()  # workspaces
    before = allocated()
    with LineProfiler(f, device=DEVICE, saved=True) as profiler:
        output = f()
        held = allocated() - before
    frame = profiler.to_dataframe(kind="saved")
    block = output.untyped_storage().nbytes()
    del output
    rest = allocated() - before
    total = int(frame["saved"].sum())
    return {
        "held": held,
        "output": block,
        "saved": total,
        "after": rest,
        "parameters": int(frame["saved.parameters"].sum()),
    }


def main() -> None:
    for function in CASES:
        report(**{function.__name__: function()})


if __name__ == "__main__":
    main()
