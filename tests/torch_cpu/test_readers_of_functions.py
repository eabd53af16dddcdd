"""What reads functions by their names and code finds, in a decorated one, what it does in the function itself."""

from __future__ import annotations

import asyncio
import inspect
import warnings

import pytest

torch = pytest.importorskip("torch")

from pytorch_memlab_c import profile, profile_every  # noqa: E402

DECORATORS = {"profile": profile, "profile_every": profile_every(1000)}


def helper(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def decorate(decorator, function):
    return DECORATORS[decorator](function)


def calls_a_helper(x: torch.Tensor, scale: float = 3.0) -> torch.Tensor:
    return helper(x) * scale


def calls_a_free_variable():
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(helper(x))

    return outer


@pytest.fixture(autouse=True)
def _deprecations_of_torchscript():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def readers():
    return {
        "script": torch.jit.script,
        "trace": lambda function: torch.jit.trace(function, torch.ones(4)),
        "compile": lambda function: torch.compile(function, backend="eager"),
        "symbolic_trace": torch.fx.symbolic_trace,
        "vmap": torch.func.vmap,
    }


@pytest.mark.parametrize("decorator", DECORATORS)
@pytest.mark.parametrize("reader", readers())
@pytest.mark.parametrize("function", [calls_a_helper, calls_a_free_variable()], ids=["globals", "closure"])
def test_functions(decorator, reader, function):
    expected = function(torch.ones(4))
    read = readers()[reader](decorate(decorator, function))
    assert torch.equal(read(torch.ones(4)), expected)


@pytest.mark.parametrize("decorator", DECORATORS)
@pytest.mark.parametrize("reader", ["script", "compile", "symbolic_trace"])
def test_methods_of_modules(decorator, reader):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return helper(self.part(x))

        def part(self, x):
            return self.linear(x)

    Net.forward, Net.part = decorate(decorator, Net.forward), decorate(decorator, Net.part)
    net, x = Net(), torch.ones(1, 4)
    assert torch.equal(readers()[reader](net)(x), net(x))


@pytest.mark.parametrize("decorator", DECORATORS)
def test_what_inspect_says(decorator):
    decorated = decorate(decorator, calls_a_helper)
    assert decorated.__globals__ is calls_a_helper.__globals__
    assert inspect.getsource(decorated) == inspect.getsource(calls_a_helper)
    assert inspect.signature(decorated) == inspect.signature(calls_a_helper)
    closed = calls_a_free_variable()
    own = inspect.getclosurevars(closed).nonlocals
    assert own.items() <= inspect.getclosurevars(decorate(decorator, closed)).nonlocals.items()


def test_names_of_builtins_that_the_module_has_given_to_others():
    namespace = {"__name__": "shadowed", "len": None, "reversed": None, "tuple": None, "BaseException": None}
    text = """
def keywords(*items, **named): return items, named
def generator(n):
    yield n
async def stream(n):
    yield n
"""
    exec(text, namespace)
    decorated = {name: profile(namespace[name]) for name in ("keywords", "generator", "stream")}

    async def collect():
        return [item async for item in decorated["stream"](2)]

    assert decorated["keywords"](1, a=2) == ((1,), {"a": 2})
    assert list(decorated["generator"](3)) == [3]
    assert asyncio.run(collect()) == [2]
