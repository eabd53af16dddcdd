"""What autograd holds, in `MemReporter`: found along the graphs of live tensors, named, and left as it is."""

from __future__ import annotations

import gc
import io
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pytorch_memlab_c import MemReporter  # noqa: E402

#: Without any tensor the CPU has no section.
anchor = torch.ones(1)


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def display() -> Any:
    return MemReporter()._display(True, "cpu", None, None)


def level() -> Any:
    gc.collect()
    return display().sections[0].level


def named(size: int) -> list[str]:
    """Names of the rows of so many bytes."""
    return sorted(row.name for row in display().sections[0].rows if row.nbytes == size)


def held_by_autograd(size: int) -> list[str]:
    return [name for name in named(size) if re.fullmatch(r"\w+Backward0\.saved_\w+", name)]


def grows(before: Any) -> tuple[int, int, int]:
    """How much more is allocated, held by autograd alone, and not reachable."""
    now = level()
    return now.allocated - before.allocated, now.saved - before.saved, now.unreachable - before.unreachable


class TestHeldByOthers:
    def test_a_loaded_script_module(self):
        """Its tensors have not been in Python yet; those of submodules count once."""
        module = torch.nn.Sequential(torch.nn.Linear(11, 101), torch.nn.BatchNorm1d(101))
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.save(torch.jit.trace(module.eval(), torch.ones(2, 11)), file)
            del module
            before = level()
            file.seek(0)
            loaded = torch.jit.load(file)
        after = level()
        assert after.seen - before.seen == 4 * (11 * 101 + 101 + 4 * 101) + 8
        assert "ScriptModule.weight" in named(4444) and "ScriptModule.running_var" in named(404)
        assert [n for n, _ in loaded.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]

    def test_a_tangent(self):
        before = level()
        with torch.autograd.forward_ad.dual_level(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own, of what it imports here
            dual = torch.autograd.forward_ad.make_dual(torch.ones(1111), torch.ones(1111)).exp()
            after = level()
            assert after.seen - before.seen == 8888 and after.unreachable == before.unreachable
            assert sum(name.endswith(".tangent") for name in named(4444)) == 1
            del dual


class TestSaved:
    @pytest.mark.parametrize("reports", [1, 2])
    def test_the_product_of_a_sum(self, reports):
        """Case 55: the sum lives for backward alone; every byte is accounted for, in later reports too."""
        inp = torch.ones(1111, requires_grad=True)
        before = level()
        out = inp * (inp + 2)
        for _ in range(reports):
            assert grows(before) == (8888, 4444, 0)
            assert held_by_autograd(4444) == ["MulBackward0.saved_other"]
        out.sum().backward()
        del out
        assert grows(before) == (4444, 0, 0)  # the gradient

    def test_a_node_that_lives_without_its_tensors(self):
        before = level()
        node = torch.nn.functional.layer_norm(torch.ones(1111, 2, requires_grad=True), (2,)).sum().grad_fn
        assert grows(before) == (17776, 17776, 0)  # the input, and mean and deviation of each row
        assert [n.rpartition(".")[2] for n in named(4444)] == ["saved_result1", "saved_result2"]
        del node
        assert grows(before) == (0, 0, 0)

    def test_results_that_python_has_never_seen(self):
        inp = torch.ones(1212, requires_grad=True)
        before = level()
        out = inp.exp().sigmoid().tanh()
        assert grows(before) == (3 * 4848, 2 * 4848, 0)
        assert held_by_autograd(4848) == ["ExpBackward0.saved_result", "SigmoidBackward0.saved_result"]
        assert out is not None

    def test_what_is_held_anyway_stays_under_its_own_name(self):
        inp = torch.ones(1313, requires_grad=True)
        middle = inp + 2
        before = level()
        out = (inp * middle).sum()
        assert grows(before) == (4, 0, 0) and not any("saved" in n for n in named(5252)) and out is not None

    def test_a_leaf_that_only_the_graph_holds(self):
        before = level()
        out = torch.ones(1414, requires_grad=True).exp().sum()
        assert grows(before) == (2 * 5656 + 4, 2 * 5656, 0)
        assert named(5656) == ["AccumulateGrad.variable", "ExpBackward0.saved_result"] and out is not None

    def test_layers_of_many_kinds(self):
        """Softmax, normalisation, dropout masks, attention, recurrence: nothing stays unaccounted for."""
        torch.manual_seed(0)
        before = level()
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        recurrent = torch.nn.GRU(32, 16)
        out = recurrent(layer(torch.randn(2, 5, 32, requires_grad=True)))[0].log_softmax(-1)
        loss = torch.nn.functional.nll_loss(out.view(-1, 16), torch.zeros(10, dtype=torch.long))
        allocated, saved, unreachable = grows(before)
        assert unreachable == 0 and saved > 4000 and allocated > saved and loss is not None

    def test_functions_of_the_program(self):
        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x.detach() * 2)
                return x * 3

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        inp = torch.ones(1515, requires_grad=True)
        before = level()
        out = Function.apply(inp)
        assert grows(before) == (2 * 6060, 6060, 0)
        assert "FunctionBackward.saved_tensors" in named(6060)
        out.sum().backward()
        assert named(6060).count("FunctionBackward.saved_tensors") == 0


class TestLeftAlone:
    def test_a_freed_graph(self):
        inp = torch.ones(1616, requires_grad=True)
        out = inp.exp()
        out.sum().backward()
        assert not any("saved" in name for name in named(6464))

    def test_hooks_do_not_run(self):
        def unpack(packed):
            raise AssertionError("unpacked")

        inp = torch.ones(1717, requires_grad=True)
        before = level()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: ("packed", t.clone()), unpack):
            out = inp.exp()
        assert grows(before)[::2] == (2 * 6868, 0) and out is not None

    def test_a_saved_tensor_that_was_changed(self):
        """Unpacking it would raise; reading it changes no version."""
        inp = torch.ones(1818, requires_grad=True)
        out = inp.exp()
        product = out * out
        out.detach().add_(1)
        version = out._version
        display()
        assert out._version == version
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()

    def test_gradients_are_those_without_a_report(self):
        def gradient(report: bool) -> Any:
            torch.manual_seed(1)
            model = torch.nn.Sequential(
                torch.nn.Linear(9, 9), torch.nn.Tanh(), torch.nn.Dropout(), torch.nn.Linear(9, 1)
            )
            loss = model(torch.ones(4, 9)).square().mean()
            if report:
                display()
            loss.backward()
            return model[0].weight.grad

        assert torch.equal(gradient(True), gradient(False))

    def test_during_backward(self):
        """The graph is being freed then: it is not read, and the report says so."""
        seen = []

        def look(gradient):
            seen.append(display())

        inp = torch.ones(1919, requires_grad=True)
        before = level()
        other = inp.sigmoid().tanh()
        middle = inp.exp()
        middle.register_hook(look)
        middle.sum().backward()
        assert any("a backward pass is running" in note for note in seen[0].notes)
        assert seen[0].sections[0].level.unreachable == before.unreachable + 7676 and other is not None
        assert not display().notes

    def test_on_another_thread_during_backward(self):
        inside, done, seen = threading.Event(), threading.Event(), []

        def hold(gradient):
            inside.set()
            done.wait(60)

        def look():
            inside.wait(60)
            seen.append(display().notes)
            done.set()

        inp = torch.ones(2020, requires_grad=True)
        middle = inp.exp()
        middle.register_hook(hold)
        thread = threading.Thread(target=look)
        thread.start()
        middle.tanh().sum().backward()
        thread.join()
        assert any("a backward pass is running" in note for note in seen[0])

    def test_a_deep_graph(self):
        before = level()
        out = inp = torch.ones(3, requires_grad=True)
        for _ in range(20_000):
            out = out * 1.5
        assert grows(before)[2] == 0 and inp is not None

    def test_the_graph_dies_as_without(self):
        before = level().allocated
        out = torch.ones(2121, requires_grad=True).exp()
        display()
        del out
        assert level().allocated == before
