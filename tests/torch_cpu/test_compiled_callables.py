"""What PyTorch compiles has no Python lines: the messages say so, and advise what works."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from pytorch_memlab_c import LineProfiler, profile, profile_every  # noqa: E402


class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


def double(x):
    return x * 2


def compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch deprecates TorchScript
        module = torch.jit.script(Double())
        return {
            "scripted function": torch.jit.script(double),
            "traced function": torch.jit.trace(double, torch.ones(2)),
            "scripted module": module,
            "its forward": module.forward,
            "compiled module": torch.compile(Double()),
            "operator": torch.ops.aten.mm,
            "overload": torch.ops.aten.mm.default,
            "function in C": torch.add,
        }


NAMES = (
    "scripted function",
    "traced function",
    "scripted module",
    "its forward",
    "compiled module",
    "operator",
    "overload",
    "function in C",
)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_compiled_is_named_so(name):
    target = compiled()[name]
    for use in (profile, profile_every(1), LineProfiler):
        with pytest.raises(TypeError, match=r": compiled, it has no Python lines; profile its caller$"):
            use(target)


def test_the_caller_of_a_scripted_function_can_be_profiled():
    scripted = compiled()["scripted function"]

    def caller(x):
        return scripted(x)

    with LineProfiler(caller, device="cpu") as profiler:
        result = caller(torch.ones(1000))
    assert result.numel() == 1000
    assert profiler.to_dataframe(columns="net.total")["net.total"].sum() == 4000
