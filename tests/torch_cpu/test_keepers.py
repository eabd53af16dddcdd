"""What keeps a tensor alive, in one line: programs that leak in the ways in which programs do."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import functools
import gc
import queue
import sys
import threading
import types
from collections import deque
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from other_thread import inside  # noqa: E402

from pytorch_memlab_c import MemReporter, keepers  # noqa: E402
from pytorch_memlab_c.chains import search  # noqa: E402
from pytorch_memlab_c.chains.groups import keepers_of  # noqa: E402
from pytorch_memlab_c.chains.keepers import census_of_now  # noqa: E402
from pytorch_memlab_c.chains.search import FEW_WAYS, Search  # noqa: E402
from pytorch_memlab_c.mem_reporter.text import keeper_lines  # noqa: E402

HISTORY: list[torch.Tensor] = []
WAITING = threading.local()
ERRORS: list[BaseException] = []


class Meter:
    shared: Any = None

    def __init__(self, *values):
        self.values = list(values)


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, size), torch.nn.ReLU(), torch.nn.Linear(size, 1))
        self._cache: dict[str, Any] = {}

    def forward(self, x):
        return self.layers(x)


@pytest.fixture(autouse=True)
def no_garbage():
    gc.collect()
    yield
    HISTORY.clear()
    ERRORS.clear()
    WAITING.__dict__.clear()


def rows(*elements: int) -> list[str]:
    """What keeps the storages of so many elements alive, without the lines of code."""
    with census_of_now(torch) as census:
        wanted = [one for one in census.storages.values() if one.nbytes in [4 * n for n in elements]]
        assert wanted
        found = keepers_of(Search(torch, census, wanted, FEW_WAYS, False), wanted, 100).rows
        return [row.text.partition(f" at {__file__.rpartition('/')[2]}")[0] for row in found]


def local(test: str, *names: str) -> str:
    """Where a local variable of a test, and of functions in it, is one."""
    qualified = ".<locals>.".join([test, *names])
    qualified = qualified if sys.version_info >= (3, 11) else qualified.rpartition(".")[2]
    return f"local of {qualified}"


class TestTwentyLeaks:
    def test_a_list_of_an_object(self):
        meter = Meter(*(torch.ones(2001) for _ in range(1490)))
        assert rows(2001) == [
            f"1,490 tensors in Meter.values <- meter, {local('TestTwentyLeaks.test_a_list_of_an_object')}"
        ]
        assert meter

    def test_one_of_a_list(self):
        meter = Meter(*range(3), torch.ones(2002))
        assert rows(2002) == [f"Meter.values[3] <- meter, {local('TestTwentyLeaks.test_one_of_a_list')}"]
        assert meter

    def test_a_global_variable(self):
        HISTORY.append(torch.ones(2003))
        assert rows(2003) == [f"HISTORY[0], global of {__name__}"]

    def test_an_attribute_of_a_class(self):
        Meter.shared = {"k": torch.ones(2004)}
        assert rows(2004) == [f"Meter.shared['k'], global of {__name__}"]
        Meter.shared = None

    def test_a_closure(self):
        def made():
            free = torch.ones(2005)
            return lambda: free

        functions = [made()]
        name = "TestTwentyLeaks.test_a_closure"
        inner = f"{name}.<locals>.made.<locals>.<lambda>" if sys.version_info >= (3, 11) else "<lambda>"
        assert rows(2005) == [f"free, in the closure of {inner} <- functions[0], {local(name)}"]
        assert functions

    def test_a_default_and_a_partial(self):
        def function(kept=torch.ones(2006)):  # noqa: B008
            return kept

        partial = functools.partial(print, torch.ones(2007))
        name = "TestTwentyLeaks.test_a_default_and_a_partial"
        inner = f"{name}.<locals>.function" if sys.version_info >= (3, 11) else "function"
        assert rows(2006) == [f"{inner}.__defaults__[0] <- function, {local(name)}"]
        assert rows(2007) == [f"partial.args[0] <- partial, {local(name)}"]
        assert function and partial

    def test_an_lru_cache(self):
        @functools.lru_cache(maxsize=8)
        def embed(n):
            return torch.ones(n)

        @functools.cache
        def embed_all(n):
            return [torch.ones(n)]

        embed(2008)
        embed_all(2009)
        name = "TestTwentyLeaks.test_an_lru_cache"
        inside = f"{name}.<locals>." if sys.version_info >= (3, 11) else ""
        assert rows(2008) == [f"functools.lru_cache of {inside}embed <- embed, {local(name)}"]
        assert rows(2009) == [f"functools.lru_cache of {inside}embed_all: [0] <- embed_all, {local(name)}"]

    def test_a_cache_of_a_module(self):
        model = torch.nn.Sequential(Model(3))
        model[0]._cache["k"] = torch.ones(2010)
        assert rows(2010) == [f"Model._cache['k'] <- model.0, {local('TestTwentyLeaks.test_a_cache_of_a_module')}"]

    def test_a_hook_of_a_tensor(self):
        weight = torch.ones(1, requires_grad=True)

        def register():
            large = torch.ones(2011)
            weight.register_hook(lambda gradient: large.sum() * gradient)

        register()
        (line,) = rows(2011)
        assert line.startswith("large, in the closure of ") and line.endswith(
            f"<lambda> <- a hook of a tensor <- weight, {local('TestTwentyLeaks.test_a_hook_of_a_tensor')}"
        )

    def test_a_hook_of_a_module(self):
        model = Model(3)

        def watch():
            seen = []
            model.layers[0].register_forward_hook(lambda module, arguments, output: seen.append(output.detach()))

        watch()
        model(torch.ones(671, 1))
        (line,) = rows(3 * 671)
        assert line.startswith("seen[0], in the closure of ") and " <- Linear._forward_hooks[" in line
        assert line.endswith(f" <- model.layers.0, {local('TestTwentyLeaks.test_a_hook_of_a_module')}")

    def test_the_graph_of_a_loss_that_is_summed_up(self):
        total = torch.zeros(())
        for _ in range(3):
            total = total + (torch.ones(2013, requires_grad=True).exp() * 2).sum()
        name = local("TestTwentyLeaks.test_the_graph_of_a_loss_that_is_summed_up")
        lines = rows(2013)
        assert set(lines) == {
            f"saved by {node} in the graph of: total, {name}" for node in ("ExpBackward0", "AccumulateGrad")
        }

    def test_a_node_of_a_graph(self):
        node = torch.ones(2014, requires_grad=True).exp().sum().grad_fn
        name = local("TestTwentyLeaks.test_a_node_of_a_graph")
        assert f"saved by ExpBackward0 in the graph of: node, {name}" in rows(2014)
        assert node

    def test_what_an_autograd_function_keeps(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.kept = torch.ones(2015)
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2

        losses = [Twice.apply(torch.ones(1, requires_grad=True))]
        (line,) = rows(2015)
        name = local("TestTwentyLeaks.test_what_an_autograd_function_keeps")
        assert line == f"TwiceBackward.kept <- ctx of TwiceBackward, in the graph of: losses[0], {name}"
        assert losses

    def test_an_exception_that_is_kept(self):
        def step():
            acts = [torch.ones(2016)]
            raise ValueError(len(acts))

        try:
            step()
        except ValueError as error:
            ERRORS.append(error)
        (line,) = rows(2016)
        assert line.startswith("acts[0], local of ") and line.partition("step")[0] in line
        (whole,) = keepers_at(2016)
        assert whole.endswith(f" <- ERRORS[0].__traceback__, global of {__name__}")

    def test_the_locals_of_another_thread(self):
        def work(wait):
            theirs = torch.ones(2017)
            wait()
            assert theirs is not None

        with inside(work):
            found = rows(2017)
        assert found == [f"theirs, {local('TestTwentyLeaks.test_the_locals_of_another_thread', 'work')}"]

    def test_a_value_of_a_thread(self):
        WAITING.batch = [torch.ones(2018)]
        assert rows(2018) == [f"WAITING.batch (thread-local)[0], global of {__name__}"]

    def test_a_suspended_generator(self):
        def stream():
            batch = torch.ones(2019)
            yield batch.shape

        generator = stream()
        next(generator)
        name = "TestTwentyLeaks.test_a_suspended_generator"
        (line,) = keepers_at(2019)
        assert line.startswith(
            f"batch, {local(name, 'stream').replace('local of', 'local of the suspended generator')} at"
        )
        assert f" <- generator, {local(name)} at" in line

    def test_a_task_that_waits(self):
        async def work():
            state = torch.ones(2020)
            await asyncio.sleep(0.2)
            return state

        async def main():
            task = asyncio.ensure_future(work())
            await asyncio.sleep(0)
            found = keepers_at(2020)
            await task
            return found

        (line,) = asyncio.run(main())
        assert line.startswith("state, local of the suspended coroutine ") and " <- task, local of " in line

    def test_parameters_gradients_and_states(self):
        model = Model(2021)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(3, 1)).sum().backward()
        optimizer.step()
        name = local("TestTwentyLeaks.test_parameters_gradients_and_states")
        assert set(rows(2021)) == {
            f"3 parameters and buffers of model, {name}",
            f"3 gradients of model, {name}",
            f"6 tensors in Adam.state <- optimizer, {name}",
        }

    def test_a_queue(self):
        prefetched: Any = queue.Queue()
        prefetched.put((0, torch.ones(2022)))
        recent = deque([torch.ones(2023) for _ in range(5)])
        name = local("TestTwentyLeaks.test_a_queue")
        assert rows(2022) == [f"Queue.queue[0][1] <- prefetched, {name}"]
        assert rows(2023) == [f"5 tensors in recent, {name}"]
        assert recent

    def test_the_queue_of_a_data_loader_in_a_loop(self):
        """The iterator is on the stack of the call alone."""
        data = [torch.ones(2024) for _ in range(1)]
        loader = torch.utils.data.DataLoader(data, batch_size=1, collate_fn=lambda batch: (batch[0] + 1, 0))
        name = local("TestTwentyLeaks.test_the_queue_of_a_data_loader_in_a_loop")
        for batch in loader:
            assert set(rows(2024)) == {f"data[0], {name}", f"batch[0], {name}"}
            assert batch

    def test_a_context_variable(self):
        variable: contextvars.ContextVar[Any] = contextvars.ContextVar("batches")
        token = variable.set([torch.ones(2210)])
        del token
        (line,) = rows(2210)
        assert line.startswith("context variable batches[0] <- a Context, held by a call that runs")
        variable.set(None)

    def test_a_tuple_that_a_hook_of_saved_tensors_has_made(self):
        x = torch.ones(2211, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda one: ("packed", one.clone()), lambda packed: packed[1]):
            loss = x.exp().sum()
        name = local("TestTwentyLeaks.test_a_tuple_that_a_hook_of_saved_tensors_has_made")
        assert sorted(rows(2211)) == ["a tuple[1], held by a call that runs, or by C or C++ code", f"x, {name}"]
        assert loss.numel()

    def test_arrays_of_numpy_that_show_the_memory_of_a_tensor(self):
        arrays = [torch.ones(2212).numpy() for _ in range(5)]
        view = torch.ones(2213).numpy()[3:]
        name = local("TestTwentyLeaks.test_arrays_of_numpy_that_show_the_memory_of_a_tensor")
        assert rows(2212) == [f"5 tensors in arrays, {name}"] and arrays
        assert rows(2213) == [f"view.base.base, {name}"] and view.size

    def test_garbage_in_a_cycle(self):
        gc.disable()
        try:
            meter = Meter(torch.ones(2025))
            meter.itself = meter
            del meter
            assert rows(2025) == ["Meter.values[0] <- a Meter, garbage in a cycle (freed by: gc.collect())"]
        finally:
            gc.enable()

    def test_what_a_call_has_on_its_stack(self):
        for _ in iter([0, torch.ones(2026)][:2]):
            found = rows(2026)
            break
        assert found == ["a list[1] <- a list_iterator, held by a call that runs, or by C or C++ code"]

    def test_what_c_holds(self):
        held = [torch.ones(2027)]
        address = id(held)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
        del held
        assert rows(2027) == ["a list[0], held by a call that runs, or by C or C++ code"]
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))


def keepers_at(elements: int) -> list[str]:
    """As `rows`, with lines of code."""
    with census_of_now(torch) as census:
        wanted = [one for one in census.storages.values() if one.nbytes == 4 * elements]
        return [row.text for row in keepers_of(Search(torch, census, wanted, FEW_WAYS, False), wanted, 100).rows]


class TestKeepers:
    def test_all_that_hold_it_the_shortest_first(self):
        tensor = torch.ones(2100)
        meter = Meter(0, tensor.view(-1))
        found = [line.partition(" at ")[0] for line in keepers(tensor)]
        name = local("TestKeepers.test_all_that_hold_it_the_shortest_first")
        assert found == [f"tensor, {name}", f"Meter.values[1] <- meter, {name}"] and meter

    def test_a_graph_holds_it_as_well(self):
        weight = torch.ones(2101, requires_grad=True)
        loss = (weight * weight).sum()
        found = [line.partition(" at ")[0] for line in keepers(weight)]
        name = local("TestKeepers.test_a_graph_holds_it_as_well")
        assert found[0] == f"weight, {name}" and f"saved by MulBackward0 in the graph of: loss, {name}" in found
        assert loss.numel()

    def test_two_names_of_one_variable(self):
        first = second = torch.ones(2102)
        assert [line.partition(",")[0] for line in keepers(first)] == ["first", "second"]
        assert second is first

    def test_the_caller_alone(self):
        found = keepers(torch.ones(2103))
        assert found == ["no Python object that can be seen: a call that runs or C++ holds it"]

    @pytest.mark.parametrize("value", [None, 1, "x", torch.nn.Linear(1, 1), torch.Tensor])
    def test_what_is_no_tensor_is_refused(self, value):
        with pytest.raises(TypeError, match="keepers\\(\\) needs a tensor, not "):
            keepers(value)

    def test_tensors_of_other_kinds(self):
        sparse = torch.eye(3).to_sparse().coalesce()
        meta = torch.ones(3, device="meta")
        for tensor, name in ((sparse, "sparse"), (sparse.values(), "values of sparse"), (meta, "meta")):
            assert any(f"{name}, local of " in line for line in keepers(tensor)), name


class TestReport:
    def test_the_last_one_of_a_list_is_in_it_though_a_variable_has_it(self):
        losses = []
        for _ in range(3):
            loss = torch.ones(2204)
            losses.append(loss)
        first, second = torch.ones(2205), torch.ones(2205)
        optimizer = torch.optim.SGD([first, second])
        name = local("TestReport.test_the_last_one_of_a_list_is_in_it_though_a_variable_has_it")
        assert rows(2204) == [f"3 tensors in losses, {name}"]
        assert rows(2205) == [f"first, {name}", f"second, {name}"] and optimizer

    def test_it_is_there_if_asked_for(self):
        history = [torch.ones(50_000) for _ in range(20)]
        shown = MemReporter()._display(False, "cpu", None, 1, True)
        text, html = str(shown), shown._repr_html_()
        line = f"3.81M  20 tensors in history, {local('TestReport.test_it_is_there_if_asked_for')} at "
        assert "Who keeps it" in text and line in text
        assert "Who keeps it" in html and "20 tensors in history" in html
        assert "Who keeps it" not in str(MemReporter()._display(False, "cpu", None, 1))
        assert history

    def test_objects_that_are_linked_are_one_row(self):
        head: Any = None
        for _ in range(300):
            node = Meter()
            node.next, node.kept = head, torch.ones(2206)
            head = node
        name = local("TestReport.test_objects_that_are_linked_are_one_row")
        del node
        assert rows(2206) == [f"299 tensors in Meter objects <- head, {name}", f"Meter.kept <- head, {name}"]

    def test_all_bytes_of_the_device_are_in_it(self):
        kept = [[torch.ones(100 + i)] for i in range(30)]
        (section,) = MemReporter()._display(False, "cpu", None, None, True).sections
        shown = section.keepers
        assert sum(row.nbytes for row in shown.rows) + shown.folded[1] == section.used
        assert len(shown.rows) <= 10 and kept

    def test_a_search_that_ends_early_says_so(self, monkeypatch):
        kept = [torch.ones(1000)]
        monkeypatch.setattr(search, "LIMIT", 100)
        (section,) = MemReporter()._display(False, "cpu", None, None, True).sections
        assert not section.keepers.whole
        assert keeper_lines(section)[-1] == ("", "the search ended after 50,000,000 objects") and kept

    def test_names_show_no_control_characters(self):
        kind = type("Bad\x1b[31m\nname", (Meter,), {})
        meter = kind(torch.ones(2207))
        (line,) = rows(2207)
        assert "\x1b" not in line and "\n" not in line and ".values[0] <- meter, local of " in line and meter

    def test_methods_that_are_bound_to_what_holds_a_tensor(self):
        functions = [types.MethodType(print, Meter(torch.ones(2208))), Meter(torch.ones(2209)).__init__]
        name = local("TestReport.test_methods_that_are_bound_to_what_holds_a_tensor")
        assert rows(2208) == [
            f"Meter.values[0] <- self, of the method builtin_function_or_method <- functions[0], {name}"
        ]
        assert rows(2209)[0].startswith("Meter.values[0] <- self, of the method ") and functions

    def test_only_what_belongs_to_the_model(self):
        model = Model(2200)
        other = [torch.ones(100_000) for _ in range(3)]
        (section,) = MemReporter(model)._display(False, "cpu", model, None, True).sections
        name = local("TestReport.test_only_what_belongs_to_the_model")
        assert [row.text.partition(" at ")[0] for row in section.keepers.rows] == [
            f"4 parameters and buffers of model, {name}"
        ]
        assert other

    def test_what_is_in_a_dict_of_few_names_is_told_apart(self):
        state = {"model": Model(2201), "replay": [torch.ones(2202) for _ in range(50)], "step": 3}
        name = local("TestReport.test_what_is_in_a_dict_of_few_names_is_told_apart")
        assert rows(2201, 2202) == [
            f"50 tensors in state['replay'], {name}",
            f"3 parameters and buffers of state['model'], {name}",
        ]
        assert state

    def test_no_code_runs_and_nothing_is_kept(self):
        class Hostile:
            def _fail(self, *arguments, **keywords):
                raise AssertionError("the program's code ran")

            __repr__ = __str__ = __hash__ = __eq__ = __iter__ = __len__ = __bool__ = __getattr__ = _fail  # type: ignore
            __getattribute__ = _fail  # type: ignore

        hostile, tensor = Hostile(), torch.ones(2203)
        object.__setattr__(hostile, "kept", [tensor])
        before = sys.getrefcount(tensor), sys.getrefcount(hostile), len(gc.get_objects())
        for _ in range(3):
            assert any("Hostile.kept[0] <- hostile" in line for line in keepers(tensor))
            str(MemReporter()._display(False, None, None, 3, True))
        assert (sys.getrefcount(tensor), sys.getrefcount(hostile)) == before[:2]
        assert type(hostile) is Hostile and len(gc.get_objects()) < before[2] + 500
