"""What autograd keeps inside the transforms of `torch.func`, whose tensors stand for others; and where it keeps
nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytorch_memlab_c import LineProfiler  # noqa: E402

SIZE = 64 * 64 * 4


def f(x):
    a = x.exp()  # saves its result
    b = a * a.sin()  # its factors: a, which is counted already, and sin's result
    return b.sum()


def parameters_in(parameters, x):
    hidden = (x @ parameters["w"]).exp()
    return hidden.sum()


def matrix(*more):
    return torch.rand(*more, 64, 64)


def plain():
    f(matrix().requires_grad_()).backward()


def vjp():
    _, pull = torch.func.vjp(f, matrix())
    pull(torch.tensor(1.0))


def plain_around_vmap():
    torch.func.vmap(f)(matrix(1).requires_grad_()).sum().backward()


TRANSFORMS = {
    "plain": plain,
    "grad": lambda: torch.func.grad(f)(matrix()),
    "grad_and_value": lambda: torch.func.grad_and_value(f)(matrix()),
    "vjp": vjp,
    "jacrev": lambda: torch.func.jacrev(f)(matrix()),
    "vmap of grad": lambda: torch.func.vmap(torch.func.grad(f))(matrix(1)),
    "grad of vmap": lambda: torch.func.grad(lambda x: torch.func.vmap(f)(x).sum())(matrix(1)),
    "vmap inside a plain graph": plain_around_vmap,
    "functionalize of grad": lambda: torch.func.functionalize(torch.func.grad(f))(matrix()),
    "vectorized jacobian": lambda: torch.autograd.functional.jacobian(f, matrix(), vectorize=True),
}


def saved_by_line(profiler):
    frame = profiler.to_dataframe(kind="saved")
    return {code.partition(" #")[0].strip(): int(value) for code, value in zip(frame["code"], frame["saved"])}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_save_what_a_plain_graph_does(name):
    with LineProfiler(f, device="cpu", saved=True) as profiler:
        TRANSFORMS[name]()
    saved = saved_by_line(profiler)
    assert saved["a = x.exp()"] == SIZE
    assert saved["b = a * a.sin()"] == SIZE


@pytest.mark.parametrize("second", [torch.func.jacrev, torch.func.jacfwd, torch.func.grad], ids=lambda t: t.__name__)
def test_second_derivatives_keep_what_the_first_pass_saved(second):
    def first(x):
        return torch.func.grad(f)(x).sum()

    with LineProfiler(f, device="cpu", saved=True) as profiler:
        second(first)(matrix())
    assert saved_by_line(profiler)["a = x.exp()"] >= SIZE


def test_parameters_and_inputs_under_grad():
    parameters, x = {"w": matrix()}, matrix()
    with LineProfiler(parameters_in, device="cpu", saved=True) as profiler:
        torch.func.grad(parameters_in)(parameters, x)
    row = profiler.to_dataframe(kind="saved").iloc[0]
    assert (row["saved"], row["saved.inputs"] + row["saved.parameters"]) == (SIZE, SIZE)


@pytest.mark.parametrize("how", ["no_grad", "nothing requires grad", "inference_mode"])
def test_nothing_saved_is_said_in_a_sentence(how):
    with LineProfiler(f, device="cpu", saved=True) as profiler:
        if how == "no_grad":
            with torch.no_grad():
                f(matrix().requires_grad_())
        elif how == "inference_mode":
            with torch.inference_mode():
                f(matrix())
        else:
            f(matrix())
    sentence = "autograd kept no tensor of the lines that ran: nothing in them required grad, or gradients were off"
    shown = profiler.display()
    for text in (str(shown), shown._repr_html_(), profiler.records().to_html()):
        assert "Saved for backward: nothing" in text
        assert sentence in text


def test_nothing_is_said_where_it_was_not_counted_or_nothing_ran():
    with LineProfiler(f, device="cpu") as uncounted:
        f(matrix())
    assert "Saved for backward" not in uncounted.records().to_text()
    with LineProfiler(f, device="cpu", saved=True) as silent:
        pass
    assert "Saved for backward" not in silent.records().to_text()
